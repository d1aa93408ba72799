{{/* A release that is called gputally has that name, another one its own before it. */}}
{{- define "gputally.name" -}}
{{- $release := .Release.Name | trunc 42 | trimSuffix "-" -}}
{{- .Values.fullnameOverride | default (contains "gputally" $release | ternary $release (printf "%s-gputally" $release)) -}}
{{- end }}

{{/* What belongs to no namespace has it in its name: two releases of one name do not share a role. */}}
{{- define "gputally.role" -}}
{{ .Release.Namespace }}:{{ include "gputally.name" . }}
{{- end }}

{{- define "gputally.account" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "gputally.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- define "gputally.selector" -}}
app.kubernetes.io/name: gputally
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gputally.labels" -}}
{{ include "gputally.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The configuration, with the names under which the cluster asks the service. */}}
{{- define "gputally.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $serve := $config.serve | default dict -}}
{{- $name := include "gputally.name" . -}}
{{- $here := printf "%s.%s" $name .Release.Namespace -}}
{{- $names := list $name $here (printf "%s.svc" $here) (printf "%s.svc.%s" $here .Values.clusterDomain) -}}
{{- $serve = set $serve "hosts" (concat $names ($serve.hosts | default list) | uniq) -}}
{{- toYaml (set $config "serve" $serve) -}}
{{- end }}

{{- define "gputally.tls" -}}
{{- with .Values.config.serve }}{{ if .tls }}yes{{ end }}{{ end -}}
{{- end }}
