{{/*
The variables of a container with the service's image; of (list $ "component").  They go before the profile, and the
values' own go before them.  Only the gateway asks others, so that only it has secrets.
*/}}
{{- define "scoregate.env" -}}
{{- $gateway := eq (index . 1) "gateway" -}}
{{- with index . 0 -}}
# The one place that can be written to, and a name for who runs; libraries ask for both.
- {name: HOME, value: /tmp}
- {name: USER, value: scoregate}
- {name: HF_HUB_OFFLINE, value: "1"}
- {name: HF_HUB_CACHE, value: /models/hub}
- {name: SCOREGATE_SERVER__GRACE_S, value: {{ .Values.gateway.graceSeconds | quote }}}
{{- if eq .Values.runtime "ray" }}
# Ray reports to its makers unless told not to.
- {name: RAY_USAGE_STATS_ENABLED, value: "0"}
- {name: SCOREGATE_RUNTIME__KIND, value: ray}
- {name: SCOREGATE_RUNTIME__ADDRESS, value: auto}
- {name: SCOREGATE_RUNTIME__START_TIMEOUT_S, value: {{ .Values.gateway.startupSeconds | quote }}}
{{- end }}
{{- if .Values.questionLlm.enabled }}
{{- $table := printf "SCOREGATE_MODELS__%s" (upper .Values.questionLlm.name) }}
- {name: {{ $table }}__BASE_URL, value: "http://{{ include "scoregate.name" . }}-vllm:8000/v1"}
- {name: {{ $table }}__MODEL, value: {{ .Values.questionLlm.model }}}
- {name: {{ $table }}__REVISION, value: {{ .Values.questionLlm.revision | quote }}}
{{- if .Values.secrets.vllm }}
- {name: {{ $table }}__API_KEY_ENV, value: VLLM_API_KEY}
{{- end }}
{{- end }}
{{- if $gateway }}
{{ include "scoregate.gateway-env" . }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end }}

{{/* Those that only the gateway has. */}}
{{- define "scoregate.gateway-env" -}}
- {name: SCOREGATE_SERVER__HOST, value: 0.0.0.0}
- {name: SCOREGATE_SERVER__PORT, value: "8000"}
- {name: SCOREGATE_SERVER__METRICS_PORT, value: "9000"}
{{- if .Values.secrets.apiKeys }}
- {name: SCOREGATE_SERVER__API_KEYS_FILE, value: /etc/scoregate-keys/keys.toml}
{{- end }}
{{- if .Values.decisionsLog.enabled }}
- {name: SCOREGATE_DECISIONS__LOG, value: sqlite:////var/lib/scoregate/decisions.sqlite3}
{{- end }}
{{- if and .Values.questionLlm.enabled .Values.secrets.vllm }}
- name: VLLM_API_KEY
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.vllm }}, key: key}}
{{- end }}
{{- if .Values.redis.enabled }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.redis }}, key: password}}
- {name: SCOREGATE_CACHE__QUESTIONS, value: "redis://:$(REDIS_PASSWORD)@{{ include "scoregate.name" . }}-redis:6379/0"}
- {name: SCOREGATE_CACHE__SCORES, value: "redis://:$(REDIS_PASSWORD)@{{ include "scoregate.name" . }}-redis:6379/0"}
{{- else if .Values.secrets.redisUrl }}
- name: SCOREGATE_CACHE__QUESTIONS
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.redisUrl }}, key: url}}
- name: SCOREGATE_CACHE__SCORES
  valueFrom: {secretKeyRef: {name: {{ .Values.secrets.redisUrl }}, key: url}}
{{- else }}
- {name: SCOREGATE_CACHE__QUESTIONS, value: sqlite:////tmp/questions.sqlite3}
{{- end }}
{{- end }}
