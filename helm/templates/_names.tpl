{{/* The name that all objects begin with: the release's, with the chart's where that is not in it. */}}
{{- define "scoregate.name" -}}
{{- $name := ternary .Release.Name (printf "%s-scoregate" .Release.Name) (contains "scoregate" .Release.Name) -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* The labels by which a component's pods are found; of (list $ "component"). */}}
{{- define "scoregate.selector" -}}
app.kubernetes.io/name: scoregate
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* All labels of a component's objects; of (list $ "component"). */}}
{{- define "scoregate.labels" -}}
{{ include "scoregate.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: scoregate-{{ (index . 0).Chart.Version }}
{{- end }}

{{/* An image with the registry of the values; of (list $ "image"). */}}
{{- define "scoregate.from" -}}
{{- with (index . 0).Values.image.registry }}{{ . }}/{{ end }}{{ index . 1 }}
{{- end }}

{{/* The service's image, by digest or by tag. */}}
{{- define "scoregate.image" -}}
{{- with .Values.image -}}
{{ include "scoregate.from" (list $ .repository) }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* What the prefetch job downloads, as JSON: the models of the values, and the question LLM. */}}
{{- define "scoregate.models" -}}
{{- $llm := dict "repository" .Values.questionLlm.model "revision" .Values.questionLlm.revision -}}
{{- ternary (append .Values.modelCache.models $llm) .Values.modelCache.models .Values.questionLlm.enabled | toJson -}}
{{- end }}

{{/* The file that says that those models are there. */}}
{{- define "scoregate.ready" -}}
/models/ready/{{ include "scoregate.models" . | sha256sum | trunc 12 }}
{{- end }}
