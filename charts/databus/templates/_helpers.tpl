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

{{/*
The Lease of a component whose active replica Kubernetes elects, nothing for others; the rule of its name is that of databus/names.py.
root: the chart's context; name: of the component
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

{{/* databus.yaml: the user's configuration and what the chart decides. */}}
{{- define "databus.config" -}}
{{- $own := dict
  "source" (dict "password_file" "/run/secrets/databus/password")
  "reader" (dict "listen" "0.0.0.0:9101")
  "publisher" (dict "listen" "0.0.0.0:9102")
  "dumps" (dict "listen" "0.0.0.0:8080" "storage" "file:///var/lib/databus/dumps")
  "spark" (dict "listen" "0.0.0.0:9103" "lake" "file:///var/lib/databus/lake")
}}
{{- if .Values.dumpApi.enabled }}
  {{- $_ := set $own.dumps "url" (printf "http://%s-dump-api:8080" (include "databus.fullname" .)) }}
{{- else if and .Values.sparkSink.enabled (not .Values.config.dumps.url) }}
  {{- fail "sparkSink begins with a dump: enable dumpApi, or set config.dumps.url to the address of another one" }}
{{- end }}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}
