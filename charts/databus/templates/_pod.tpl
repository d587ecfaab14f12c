{{/*
The pod of a component, as a template. Parameters:
root: the chart's context
name: the component's name
port: its port
values: its section of the chart's values
folder: the path at which its files are mounted; unset if it keeps none
account: the name of its service account, if it has one of its own, which may use the Kubernetes API
container: the name of its container, by default the component's
env: more environment variables
files: texts of more files in /etc/databus, by name without .yaml
startup: seconds that it may take until it answers
*/}}
{{- define "databus.pod" -}}
{{- with .root -}}
metadata:
  labels:
    {{- include "databus.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
    {{- with merge (dict) ($.values.podLabels | default dict) .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    databus/config: |
      {{- include "databus.componentConfig" $ | nindent 6 }}
    {{- range $file, $text := $.files }}
    databus/{{ $file }}: |
      {{- nindent 6 $text }}
    {{- end }}
    {{- with merge (dict) ($.values.podAnnotations | default dict) .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "databus.podSpec" . | nindent 2 }}
  serviceAccountName: {{ $.account | default (include "databus.serviceAccountName" .) }}
  automountServiceAccountToken: {{ not (and (empty $.account) (empty (include "databus.readLeases" $))) }}
  # A service stops within 16 s: two steps of 8 s (databus_core.runtime); with traces 18 s (databus_core.tracing).
  terminationGracePeriodSeconds: {{ $.values.terminationGracePeriodSeconds | default 30 }}
  containers:
    - name: {{ $.container | default $.name }}
      {{- include "databus.container" $ | nindent 6 }}
      {{- with concat ($.env | default list) .Values.env ($.values.env | default list) }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ $.port }}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: {{ div ($.startup | default 120) 2 }}
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        # Dumps can be read while dump-api waits for the database or Kafka: its Service sends requests to all pods that answer.
        httpGet: {path: {{ ternary "/healthz" "/readyz" (eq $.name "dump-api") }}, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
      {{- if eq $.name "dump-api" }}
      lifecycle:
        preStop: # until no more requests come
          exec: {command: [sleep, "3"]}
      {{- end }}
      {{- with $.values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        {{- include "databus.mounts" . | nindent 8 }}
        {{- with $.folder }}
        - name: files
          mountPath: {{ . }}
        {{- end }}
        {{- with concat .Values.extraVolumeMounts ($.values.extraVolumeMounts | default list) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- include "databus.volumes" $ | nindent 4 }}
    {{- if $.folder }}
    - name: files
      persistentVolumeClaim:
        claimName: {{ $.values.persistence.existingClaim | default (printf "%s-%s" (include "databus.fullname" .) $.name) }}
    {{- end }}
    {{- with concat .Values.extraVolumes ($.values.extraVolumes | default list) }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- if and (or (gt (int $.values.replicas) 1) (dig "autoscaling" "enabled" false $.values)) (not (or $.values.topologySpreadConstraints .Values.topologySpreadConstraints)) }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "databus.selectorLabels" . | nindent 10 }}
          app.kubernetes.io/component: {{ $.name }}
  {{- end }}
  {{- include "databus.scheduling" $ | nindent 2 }}
{{- end }}
{{- end }}

{{/* What all pods have: pulling images, and the Pod Security Standard `restricted`. */}}
{{- define "databus.podSpec" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end }}

{{- define "databus.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Parameters: root: the chart's context; name: the image's component */}}
{{- define "databus.container" -}}
image: {{ include "databus.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{ include "databus.containerSecurity" . }}
{{- end }}

{{/* Where pods run: a component's own values, or else those of all pods. Parameters: root; values */}}
{{- define "databus.scheduling" -}}
{{- range $key := list "priorityClassName" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with get $.values $key | default (get $.root.Values $key) }}
{{ toYaml (dict $key .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "databus.mounts" -}}
- {name: config, mountPath: /etc/databus, readOnly: true}
{{- range include "databus.secrets" . | fromYamlArray }}
- {name: {{ .name }}, mountPath: /run/secrets/{{ .name }}, readOnly: true}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{/* Parameters: root, and files as of databus.pod; password: the name of another Secret with the database's password */}}
{{- define "databus.volumes" -}}
- name: config
  # From the pod's own annotations: a pod of an old ReplicaSet keeps its configuration (ADR 36).
  downwardAPI:
    items:
      - path: databus.yaml
        fieldRef: {fieldPath: "metadata.annotations['databus/config']"}
      {{- range $file, $text := .files }}
      - path: {{ $file }}.yaml
        fieldRef: {fieldPath: "metadata.annotations['databus/{{ $file }}']"}
      {{- end }}
{{- range include "databus.secrets" .root | fromYamlArray }}
- name: {{ .name }}
  secret:
    secretName: {{ ternary $.password .secret (and (eq .name "databus") (hasKey $ "password")) }}
    defaultMode: 0440
    {{- with .key }}
    items:
      - key: {{ . }}
        path: password
    {{- end }}
{{- end }}
- name: tmp
  emptyDir: {}
{{- end }}
