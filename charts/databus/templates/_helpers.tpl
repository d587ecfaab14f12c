{{/*
Renders a template for every pipeline: for each of the value `pipelines`, whose values replace those of the release, or once for the
release itself. Parameters: a list of the chart's context and the template's name
*/}}
{{- define "databus.eachPipeline" -}}
{{- $root := index . 0 }}
{{- $template := index . 1 }}
{{- /* A section without content, as in `publisher:`, is null, and Helm removes it. */}}
{{- range list "reader" "publisher" "dumps" "backfill" "doubt" "spark" }}
{{- if not (hasKey $root.Values.config .) }}{{ $_ := set $root.Values.config . dict }}{{ end }}
{{- end }}
{{- range $name, $own := $root.Values.pipelines }}
{{- $values := mergeOverwrite (deepCopy (omit $root.Values "pipelines")) (deepCopy ($own | default dict)) }}
{{- $_ := set $values.config "name" (dig "config" "name" $name ($own | default dict)) }}
---
{{ include $template (merge (dict "Values" $values "pipeline" $name) (pick $root "Release" "Chart" "Capabilities" "Files")) }}
{{- else }}
{{- include $template $root }}
{{- end }}
{{- end }}

{{- define "databus.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* 52 characters leave room for the longest component, "-spark-sink". */}}
{{- define "databus.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- $default := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- $pipeline := ternary "" (printf "-%s" .pipeline) (empty .pipeline) }}
{{- default $default .Values.fullnameOverride | trunc (int (sub 52 (len $pipeline))) | trimSuffix "-" }}{{ $pipeline }}
{{- end }}

{{- define "databus.selectorLabels" -}}
app.kubernetes.io/name: {{ include "databus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .pipeline }}
databus/pipeline: {{ . | quote }}
{{- end }}
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
{{- $digest := get (.digests | default dict) $.name }}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}-{{ $.name }}
{{- if $digest }}@{{ $digest }}{{ else }}:{{ .tag | default $.root.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/*
The Secrets that every pod mounts, each in /run/secrets/<name>: all its keys as files or, with `key`, only that key as the file `password`.
*/}}
{{- define "databus.secrets" -}}
- {name: databus, secret: {{ include "databus.secretName" . | quote }}, key: {{ .Values.sourcePassword.secretKey | quote }}}
{{- range $name, $value := dict "databus-redis" .Values.redisPassword "databus-kafka" .Values.kafkaPassword "databus-dump-api" .Values.dumpApiKey }}
{{- with $value.secretName }}
- {name: {{ $name }}, secret: {{ quote . }}, key: {{ quote $value.secretKey }}}
{{- end }}
{{- end }}
{{- range $name, $value := dict "databus-tls" .Values.sourceTls "databus-redis-tls" .Values.redisTls "databus-kafka-tls" .Values.kafkaTls }}
{{- with $value.secretName }}
- {name: {{ $name }}, secret: {{ quote . }}}
{{- end }}
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

{{/* The Leases that a component reads, as words: reader and publisher their own, dump-api both, for its page. Parameters: root; name */}}
{{- define "databus.readLeases" -}}
{{- range ternary (list "publisher" "reader") (list .name) (eq .name "dump-api") }}
{{- with include "databus.kubernetesLease" (dict "root" $.root "name" .) }} {{ . }}{{ end }}
{{- end }}
{{- end }}

{{/*
The service account of dump-api if it reads Leases: one of its own, because the others may also write them, and dump-api is what clients
reach. Empty without Leases, and if the chart creates no accounts.
*/}}
{{- define "databus.leaseReader" -}}
{{- if and .Values.dumpApi.enabled .Values.serviceAccount.create (include "databus.readLeases" (dict "root" . "name" "dump-api")) }}
{{- printf "%s-dump-api" (include "databus.fullname" .) }}
{{- end }}
{{- end }}
