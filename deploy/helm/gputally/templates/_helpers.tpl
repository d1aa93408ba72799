{{- define "gputally.name" -}}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{- end }}
{{- define "gputally.labels" -}}
app.kubernetes.io/name: gputally
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
{{- define "gputally.selector" -}}
app.kubernetes.io/name: gputally
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "gputally.account" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "gputally.name" .) .Values.serviceAccount.name }}
{{- else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}
