{{/*
A component's Deployment, Service and, if it keeps files, PersistentVolumeClaim. Parameters:
root: the chart's context
name: the component's name
key: the name of its section in the chart's values
port: its port
values: this section
single: whether two pods must never run at the same time
and those of databus.pod
*/}}
{{- define "databus.component" -}}
{{- $name := printf "%s-%s" (include "databus.fullname" .root) .name }}
{{- with .root }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "databus.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
spec:
  {{- if not (dig "autoscaling" "enabled" false $.values) }}
  replicas: {{ $.values.replicas | default 1 }}
  {{- end }}
  strategy:
    {{- if $.single }}
    type: Recreate
    {{- else }}
    # The new pod stands by until the old one gives up its lease; those of dump-api share the work.
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
    {{- end }}
  selector:
    matchLabels:
      {{- include "databus.selectorLabels" . | nindent 6 }}
      app.kubernetes.io/component: {{ $.name }}
  template:
    {{- include "databus.pod" $ | nindent 4 }}
{{- end }}
---
{{ include "databus.service" . }}
{{- if and .folder (not .values.persistence.existingClaim) }}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ $name }}
  labels:
    {{- include "databus.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
  annotations:
    helm.sh/resource-policy: keep
spec:
  accessModes: [{{ .values.persistence.accessMode | default "ReadWriteOnce" }}]
  {{- with .values.persistence.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .values.persistence.size }}
{{- end }}
{{- include "databus.podDisruptionBudget" . }}
{{- end }}

{{/* A component's Service. Parameters: those of databus.component. */}}
{{- define "databus.service" -}}
{{- with .root -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "databus.fullname" . }}-{{ $.name }}
  labels:
    {{- include "databus.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
spec:
  selector:
    {{- include "databus.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
  ports:
    - name: http
      port: {{ $.port }}
      targetPort: http
{{- end }}
{{- end }}

{{/*
A component's PodDisruptionBudget: by default, with several replicas, a drain evicts one pod at a time. One that would block every drain is
refused. Parameters: those of databus.component.
*/}}
{{- define "databus.podDisruptionBudget" -}}
{{- $replicas := int (.values.replicas | default 1) }}
{{- if dig "autoscaling" "enabled" false .values }}{{ $replicas = int .values.autoscaling.minReplicas }}{{ end }}
{{- $budget := .values.podDisruptionBudget | default dict }}
{{- if and (empty $budget) (gt $replicas 1) }}{{ $budget = dict "maxUnavailable" 1 }}{{ end }}
{{- with $budget }}
  {{- $required := toString .minAvailable }}
  {{- $least := ternary (ceil (divf (mulf (float64 (trimSuffix "%" $required)) $replicas) 100)) (float64 $required) (hasSuffix "%" $required) }}
  {{- if or (and (hasKey . "minAvailable") (ge (int $least) $replicas)) (has (toString .maxUnavailable) (list "0" "0%")) }}
    {{- fail (printf "%s.podDisruptionBudget would block every drain of a node: with %d of %s.replicas no pod could ever be evicted; raise the replicas, or set maxUnavailable: 1" $.key $replicas $.key) }}
  {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "databus.fullname" $.root }}-{{ $.name }}
  labels:
    {{- include "databus.labels" $.root | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
spec:
  {{- toYaml . | nindent 2 }}
  # A pod that is not ready does no work that a drain could interrupt.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "databus.selectorLabels" $.root | nindent 6 }}
      app.kubernetes.io/component: {{ $.name }}
{{- end }}
{{- end }}
