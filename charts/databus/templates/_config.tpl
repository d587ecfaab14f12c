{{/*
The keys of `config` that each component reads, by section: all, those listed in `only`, or all but those in `without`. A component gets no
others, so a change restarts only the pods that it concerns.
*/}}
{{- define "databus.read" -}}
reader:
  all: [name, source, redis, kafka, reader, backfill, doubt, log]
  only: {dumps: [url, api_key_file]}
  without: {publisher: [election, listen, claim_checks, topic_settings]}
publisher:
  all: [name, source, redis, kafka, publisher, doubt, log]
  only: {reader: [backlog_limit, row_limit]}
dump-api:
  all: [name, source, redis, kafka, dumps, log]
  # what the operations page shows: where a new pipeline begins, the limit of its backlog, and who holds the leases
  only: {backfill: [keyless_limit], reader: [start, backlog_limit, election]}
  without: {publisher: [listen, claim_checks, topic_settings]}
spark-sink:
  all: [name, source, kafka, spark, log]
  only: {dumps: [url, api_key_file]}
  without: {publisher: [election, listen, claim_checks, topic_settings]}
{{- end }}

{{/* The content of a component's databus.yaml. Parameters: root: the chart's context; name: the component's name */}}
{{- define "databus.componentConfig" -}}
{{- $config := include "databus.config" .root | fromYaml }}
{{- $read := get (include "databus.read" . | fromYaml) .name }}
{{- $own := dict }}
{{- range $read.all }}
  {{- if hasKey $config . }}{{ $_ := set $own . (get $config .) }}{{ end }}
{{- end }}
{{- range $section, $keys := $read.only }}
  {{- $part := dict }}
  {{- range $keys }}
    {{- if hasKey (get $config $section) . }}{{ $_ := set $part . (get (get $config $section) .) }}{{ end }}
  {{- end }}
  {{- if $part }}{{ $_ := set $own $section $part }}{{ end }}
{{- end }}
{{- range $section, $keys := $read.without }}
  {{- $part := deepCopy (get $config $section) }}
  {{- range $keys }}{{ $_ := unset $part . }}{{ end }}
  {{- if $part }}{{ $_ := set $own $section $part }}{{ end }}
{{- end }}
{{- toYaml $own }}
{{- end }}

{{/* The content of databus.yaml: the settings that the chart makes, overridden by the value `config`. */}}
{{- define "databus.config" -}}
{{- $own := dict
  "source" (dict "password_file" "/run/secrets/databus/password")
  "reader" (dict "listen" "0.0.0.0:9101")
  "publisher" (dict "listen" "0.0.0.0:9102")
  "dumps" (dict "listen" "0.0.0.0:8080" "storage" "file:///var/lib/databus/dumps")
  "spark" (dict "listen" "0.0.0.0:9103")
}}
{{- if ne .Values.sparkSink.mode "operator" }}
  {{- $_ := set $own.spark "conf" (dict "spark.driver.memory" .Values.sparkSink.driver.memory) }}
{{- end }}
{{- if eq .Values.sparkSink.mode "local" }}
  {{- $_ := set $own.spark "lake" "file:///var/lib/databus/lake" }}
{{- else if .Values.sparkSink.enabled }}
  {{- $_ := mergeOverwrite $own.spark (include "databus.sparkOnKubernetes" . | fromYaml) }}
{{- end }}
{{- if .Values.redisPassword.secretName }}
  {{- $_ := set $own "redis" (dict "password_file" "/run/secrets/databus-redis/password") }}
{{- end }}
{{- if .Values.kafkaPassword.secretName }}
  {{- $file := "/run/secrets/databus-kafka/password" }}
  {{- $mechanism := dig "sasl" "mechanism" "" .Values.config.kafka }}
  {{- if not $mechanism }}
    {{- fail "kafkaPassword is set, but config.kafka.sasl is not: set config.kafka.sasl.mechanism, or remove kafkaPassword" }}
  {{- end }}
  {{- $sasl := ternary (dict "oauth" (dict "client_secret_file" $file)) (dict "password_file" $file) (eq $mechanism "OAUTHBEARER") }}
  {{- $_ := set $own "kafka" (dict "sasl" $sasl) }}
{{- end }}
{{- $config := deepCopy .Values.config }}
{{- if .Values.dumpApiKey.secretName }}
  {{- $file := "/run/secrets/databus-dump-api/password" }}
  {{- $key := dict "name" "databus" "scopes" (list "read" "write") "key_file" $file }}
  {{- $_ := set $own.dumps "api_key_file" $file }}
  {{- $_ := set $config.dumps "api_keys" (prepend ($config.dumps.api_keys | default list) $key) }}
{{- else if and .Values.dumpApi.enabled (not (or $config.dumps.open $config.dumps.api_keys)) }}
  {{- fail "dumpApi needs a key, or every pod of the cluster could read all published rows: set dumpApiKey.secretName to a Secret with a key of your choice, or config.dumps.open: true if a NetworkPolicy protects the port" }}
{{- end }}
{{- if .Values.dumpApi.enabled }}
  {{- $_ := set $own.dumps "url" (printf "http://%s-dump-api:8080" (include "databus.fullname" .)) }}
{{- else if and .Values.sparkSink.enabled (not .Values.config.dumps.url) }}
  {{- fail "sparkSink needs a dump API, because it first loads a dump: enable dumpApi, or set config.dumps.url to the address of another one" }}
{{- end }}
{{- range $number, $rule := $config.publisher.routes }}
  {{- if and $rule.hash (not (contains "DATABUS__PUBLISHER__SALT" (toJson $.Values.env))) }}
    {{- fail (printf "config.publisher.routes: rule %d: hash needs a salt, in all components: set DATABUS__PUBLISHER__SALT in env, from a Secret" (add1 $number)) }}
  {{- end }}
{{- end }}
{{- toYaml (mergeOverwrite $own $config) }}
{{- end }}
