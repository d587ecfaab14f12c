{{/*
A component's Deployment, Service and, if it keeps files, PersistentVolumeClaim. Parameters:
root: the chart's context
name: the component's name
port: its port
values: its section of the chart's values
single: whether two pods must never run at the same time
and those of databus.pod
*/}}
{{- define "databus.component" -}}
{{- $fullname := include "databus.fullname" .root }}
{{- $name := printf "%s-%s" $fullname .name }}
{{- with .root }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels:
    {{- include "databus.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
spec:
  replicas: {{ $.values.replicas | default 1 }}
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
  {{- if eq $.name "dump-api" }}
  # While a pod is not ready, dumps can still be read and deleted.
  publishNotReadyAddresses: true
  {{- end }}
  selector:
    {{- include "databus.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
  ports:
    - name: http
      port: {{ $.port }}
      targetPort: http
{{- end }}
{{- end }}
