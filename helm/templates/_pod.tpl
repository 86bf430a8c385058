{{/* What every pod has in common. */}}
{{- define "scoregate.pod" -}}
# Without the variables of the namespace's Services, of which some would be settings of vLLM and Redis.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .Values.userId }}
  runAsGroup: {{ .Values.userId }}
  fsGroup: {{ .Values.userId }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What every container may do. */}}
{{- define "scoregate.rights" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* On which nodes pods run; of a table with nodeSelector and tolerations. */}}
{{- define "scoregate.nodes" -}}
nodeSelector: {{ toJson .nodeSelector }}
tolerations: {{ toJson .tolerations }}
{{- end }}

{{/* A container that waits until the prefetch job has finished. */}}
{{- define "scoregate.wait" -}}
- name: wait-for-models
  image: {{ include "scoregate.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command: [sh, -c, "until [ -e {{ include "scoregate.ready" . }} ]; do sleep 5; done"]
  securityContext: {{- include "scoregate.rights" . | nindent 4 }}
  resources:
    requests: {cpu: 10m, memory: 32Mi}
    limits: {memory: 32Mi}
  volumeMounts:
    - {name: models, mountPath: /models, readOnly: true}
{{- end }}

{{/* The volume of the models. */}}
{{- define "scoregate.models-volume" -}}
- name: models
  persistentVolumeClaim:
    claimName: {{ .Values.modelCache.existingClaim | default (printf "%s-models" (include "scoregate.name" .)) }}
{{- end }}
