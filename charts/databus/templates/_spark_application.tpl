{{/* The sink as a SparkApplication of Kubeflow's Spark operator. Parameters: those of databus.component. */}}
{{- define "databus.sparkApplication" -}}
{{- with .root }}
{{- $conf := .Values.config.spark.conf | default dict }}
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata:
  name: {{ include "databus.fullname" . }}-{{ $.name }}
  labels:
    {{- include "databus.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
spec:
  type: Python
  mode: cluster
  sparkVersion: 4.1.3
  image: {{ include "databus.image" $ }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  mainApplicationFile: local:///opt/databus/main.py
  restartPolicy:
    type: Always
    onFailureRetryInterval: 10
    onSubmissionFailureRetryInterval: 10
  sparkConf:
    # Java is started before the sink reads its settings.
    spark.driver.extraClassPath: /opt/databus/jars/*
    {{- range $name, $value := omit $conf "spark.driver.memory" }}
    {{ $name }}: {{ $value | toString | quote }}
    {{- end }}
  driver:
    cores: 1
    memory: {{ get $conf "spark.driver.memory" | default .Values.sparkSink.driver.memory }}
    serviceAccount: {{ $.account }}
    template:
      {{- $container := dict "container" "spark-kubernetes-driver" "values" (omit $.values "resources") }}
      {{- include "databus.pod" (merge $container $) | nindent 6 }}
  executor:
    instances: {{ .Values.sparkSink.executor.instances }}
    cores: {{ .Values.sparkSink.executor.cores }}
    memory: {{ .Values.sparkSink.executor.memory }}
    template:
      {{- include "databus.executor" . | nindent 6 }}
{{- end }}
{{- end }}
