{{/* What a container with the service's image has in common, wherever it runs; of (list $ "component"). */}}
{{- define "scoregate.container" -}}
{{- $gateway := eq (index . 1) "gateway" -}}
env: {{- include "scoregate.env" . | nindent 2 }}
{{- with index . 0 }}
image: {{ include "scoregate.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext: {{- include "scoregate.rights" . | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if .Values.profile }}
  - {name: profile, mountPath: /etc/scoregate, readOnly: true}
  {{- end }}
  {{- if and $gateway .Values.secrets.apiKeys }}
  - {name: keys, mountPath: /etc/scoregate-keys, readOnly: true}
  {{- end }}
  {{- if and $gateway .Values.decisionsLog.enabled }}
  - {name: decisions, mountPath: /var/lib/scoregate}
  {{- end }}
  {{- if .Values.modelCache.enabled }}
  - {name: models, mountPath: /models, readOnly: true}
  {{- end }}
  {{- if eq .Values.runtime "ray" }}
  - {name: shared-memory, mountPath: /dev/shm}
  {{- end }}
{{- end }}
{{- end }}

{{/* The volumes of its pod; of (list $ "component"). */}}
{{- define "scoregate.volumes" -}}
{{- $gateway := eq (index . 1) "gateway" -}}
{{- with index . 0 -}}
- name: tmp
  emptyDir: {}
{{- if .Values.profile }}
- name: profile
  configMap: {name: {{ include "scoregate.name" . }}}
{{- end }}
{{- if and $gateway .Values.secrets.apiKeys }}
- name: keys
  secret: {secretName: {{ .Values.secrets.apiKeys }}}
{{- end }}
{{- if and $gateway .Values.decisionsLog.enabled }}
- name: decisions
  persistentVolumeClaim: {claimName: {{ include "scoregate.name" . }}-decisions}
{{- end }}
{{- if .Values.modelCache.enabled }}
{{ include "scoregate.models-volume" . }}
{{- end }}
{{- if eq .Values.runtime "ray" }}
- name: shared-memory
  emptyDir: {medium: Memory, sizeLimit: {{ .Values.ray.sharedMemory }}}
{{- end }}
{{- end }}
{{- end }}

{{/* The rest of the container that callers reach. */}}
{{- define "scoregate.gateway" -}}
ports:
  - {name: http, containerPort: 8000}
  - {name: metrics, containerPort: 9000}
resources: {{- toYaml .Values.gateway.resources | nindent 2 }}
lifecycle:
  # Meanwhile load balancers learn that the pod ends.  It takes new requests until then.
  preStop: {exec: {command: [sleep, "5"]}}
# The port opens when the models are loaded, so that nothing answers before.
startupProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  failureThreshold: {{ divf .Values.gateway.startupSeconds 10 | ceil }}
# It fails where no batch has finished for `server.stall_s`, and not under load.
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end }}

{{/* Seconds that its pod has: the wait above, the requests in progress, what closes afterwards, and some more. */}}
{{- define "scoregate.grace" -}}
{{ add .Values.gateway.graceSeconds 15 }}
{{- end }}

{{/* The 95th percentile of the wait, by lane, above which pods are added; in JSON. */}}
{{- define "scoregate.waits" -}}
{{- with .Values.autoscaling -}}
{{ dict "interactive" .interactiveWaitSeconds "bulk" .bulkWaitSeconds | toJson }}
{{- end -}}
{{- end }}

{{/* Its pods lie on several nodes where they can. */}}
{{- define "scoregate.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "scoregate.selector" (list . "gateway") | nindent 8 }}
{{- end }}
