{{/* The service account of the sink's pod and, in it, the name of the Service at which executors find it. */}}
{{- define "databus.sparkDriver" -}}
{{- printf "%s-spark-driver" (include "databus.fullname" . | trunc 50 | trimSuffix "-") }}
{{- end }}

{{/* The settings `spark` of a sink whose executors are pods. */}}
{{- define "databus.sparkOnKubernetes" -}}
{{- if hasPrefix "file:" (.Values.config.spark.lake | default "file:") }}
  {{- fail (printf "sparkSink.mode %s needs config.spark.lake in a file system that all pods reach, for instance s3a://bucket/lake" .Values.sparkSink.mode) }}
{{- end }}
master: k8s://https://kubernetes.default.svc
{{- if eq .Values.sparkSink.mode "client" }}
conf:
  spark.kubernetes.namespace: {{ .Release.Namespace }}
  spark.kubernetes.container.image: {{ include "databus.image" (dict "root" . "name" "spark-sink") }}
  spark.kubernetes.container.image.pullPolicy: {{ .Values.image.pullPolicy }}
  spark.kubernetes.executor.podTemplateFile: /etc/databus/executor.yaml
  spark.executor.instances: {{ .Values.sparkSink.executor.instances }}
  spark.executor.cores: {{ .Values.sparkSink.executor.cores }}
  spark.executor.memory: {{ .Values.sparkSink.executor.memory }}
  spark.driver.host: {{ include "databus.sparkDriver" . }}.{{ .Release.Namespace }}.svc
  spark.driver.bindAddress: 0.0.0.0
  spark.driver.port: 7078
  spark.driver.blockManager.port: 7079
{{- end }}
{{- end }}

{{/* The pod of an executor, as a template. It gets Kafka's certificates and passwords, and the lake's, from the driver. */}}
{{- define "databus.executor" -}}
metadata:
  labels:
    {{- include "databus.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: spark-executor
  {{- with merge (dict) (.Values.sparkSink.podAnnotations | default dict) .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "databus.podSpec" . | nindent 2 }}
  serviceAccountName: {{ include "databus.serviceAccountName" . }}
  automountServiceAccountToken: false
  containers:
    - name: spark-kubernetes-executor
      {{- include "databus.containerSecurity" . | nindent 6 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: work
          mountPath: /var/lib/databus
  volumes:
    - name: tmp
      emptyDir: {}
    - name: work
      emptyDir: {}
  {{- include "databus.scheduling" (dict "root" . "values" .Values.sparkSink) | nindent 2 }}
{{- end }}
