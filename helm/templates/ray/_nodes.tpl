{{/* The probes of a pod that is a node of Ray and nothing else.  KubeRay's own ask for Ray's HTTP proxy, which is off. */}}
{{- define "scoregate.ray-probes" -}}
livenessProbe:
  httpGet: {path: /api/healthz, port: 52365}
  initialDelaySeconds: 30
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 12
readinessProbe:
  httpGet: {path: /api/healthz, port: 52365}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* What all pods of the cluster have; a change of the profile starts another cluster. */}}
{{- define "scoregate.ray-metadata" -}}
labels: {{- include "scoregate.labels" . | nindent 2 }}
annotations:
  checksum/profile: {{ (index . 0).Values.profile | sha256sum }}
{{- end }}
