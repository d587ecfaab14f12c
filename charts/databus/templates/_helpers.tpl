{{- define "databus.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* 52 characters leave room for the longest component, "-spark-sink". */}}
{{- define "databus.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $default := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- default $default .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "databus.selectorLabels" -}}
app.kubernetes.io/name: {{ include "databus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "databus.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "databus.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: databus
{{- end }}

{{- define "databus.serviceAccountName" -}}
{{- default (ternary (include "databus.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "databus.secretName" -}}
{{- default (printf "%s-source" (include "databus.fullname" .)) .Values.sourcePassword.secretName }}
{{- end }}

{{/* The image of a component. Parameters: root: the chart's context; name: the component's name */}}
{{- define "databus.image" -}}
{{- with .root.Values.image }}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}-{{ $.name }}:{{ .tag | default $.root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{/*
The Secrets that every pod mounts, each in /run/secrets/<name>: all its keys as files or, with `key`, only that key as the file `password`.
*/}}
{{- define "databus.secrets" -}}
- {name: databus, secret: {{ include "databus.secretName" . | quote }}, key: {{ .Values.sourcePassword.secretKey | quote }}}
{{- with .Values.sourceTls.secretName }}
- {name: databus-tls, secret: {{ quote . }}}
{{- end }}
{{- if .Values.redisPassword.secretName }}
- {name: databus-redis, secret: {{ quote .Values.redisPassword.secretName }}, key: {{ quote .Values.redisPassword.secretKey }}}
{{- end }}
{{- with .Values.redisTls.secretName }}
- {name: databus-redis-tls, secret: {{ quote . }}}
{{- end }}
{{- if .Values.kafkaPassword.secretName }}
- {name: databus-kafka, secret: {{ quote .Values.kafkaPassword.secretName }}, key: {{ quote .Values.kafkaPassword.secretKey }}}
{{- end }}
{{- with .Values.kafkaTls.secretName }}
- {name: databus-kafka-tls, secret: {{ quote . }}}
{{- end }}
{{- if .Values.dumpApiKey.secretName }}
- {name: databus-dump-api, secret: {{ quote .Values.dumpApiKey.secretName }}, key: {{ quote .Values.dumpApiKey.secretKey }}}
{{- end }}
{{- end }}

{{/*
The name of a component's Lease, made as in databus/names.py; empty unless the component has `election: {by: kubernetes}`. Parameters:
root: the chart's context
name: the component's name
*/}}
{{- define "databus.kubernetesLease" -}}
{{- $pipeline := .root.Values.config.name }}
{{- $section := get .root.Values.config .name | default dict }}
{{- if eq (dig "election" "by" "redis" $section) "kubernetes" }}
{{- $plain := $pipeline | lower | replace "_" "-" }}
{{- $plain = ternary $plain (printf "%s-%s" $plain (sha256sum $pipeline | trunc 8)) (eq $plain $pipeline) }}
{{- printf "databus-%s-%s" $plain .name }}
{{- end }}
{{- end }}
