{{/* Egress: names can be looked up. */}}
{{- define "scoregate.dns" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end }}

{{/* A peer: the pods of a component; of (list $ "component"). */}}
{{- define "scoregate.peer" -}}
- podSelector:
    matchLabels: {{- include "scoregate.selector" . | nindent 6 }}
{{- end }}
