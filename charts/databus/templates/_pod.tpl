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
*/}}
{{- define "databus.pod" -}}
{{- $fullname := include "databus.fullname" .root }}
{{- $name := printf "%s-%s" $fullname .name }}
{{- with .root -}}
metadata:
  labels:
    {{- include "databus.selectorLabels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
  annotations:
    databus/config: |
      {{- include "databus.componentConfig" $ | nindent 6 }}
    {{- range $file, $text := $.files }}
    databus/{{ $file }}: |
      {{- nindent 6 $text }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  serviceAccountName: {{ $.account | default (include "databus.serviceAccountName" .) }}
  automountServiceAccountToken: {{ not (and (empty $.account) (empty (include "databus.kubernetesLease" (dict "root" . "name" $.name)))) }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: 30
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ $.container | default $.name }}
      image: {{ include "databus.image" $ }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- with concat ($.env | default list) .Values.env }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ $.port }}
      livenessProbe:
        httpGet:
          path: /healthz
          port: http
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet:
          path: /readyz
          port: http
        periodSeconds: 5
        timeoutSeconds: 5
      {{- with $.values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        - name: config
          mountPath: /etc/databus
          readOnly: true
        {{- range include "databus.secrets" . | fromYamlArray }}
        - name: {{ .name }}
          mountPath: /run/secrets/{{ .name }}
          readOnly: true
        {{- end }}
        - name: tmp
          mountPath: /tmp
        {{- with $.folder }}
        - name: files
          mountPath: {{ . }}
        {{- end }}
  volumes:
    - name: config
      # From the pod's own annotations: a pod of an old ReplicaSet keeps its configuration (ADR 35).
      downwardAPI:
        items:
          - path: databus.yaml
            fieldRef: {fieldPath: "metadata.annotations['databus/config']"}
          {{- range $file, $text := $.files }}
          - path: {{ $file }}.yaml
            fieldRef: {fieldPath: "metadata.annotations['databus/{{ $file }}']"}
          {{- end }}
    {{- range include "databus.secrets" . | fromYamlArray }}
    - name: {{ .name }}
      secret:
        secretName: {{ .secret }}
        defaultMode: 0440
        {{- with .key }}
        items:
          - key: {{ . }}
            path: password
        {{- end }}
    {{- end }}
    - name: tmp
      emptyDir: {}
    {{- if $.folder }}
    - name: files
      persistentVolumeClaim:
        claimName: {{ $.values.persistence.existingClaim | default $name }}
    {{- end }}
  {{- if gt (int $.values.replicas) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "databus.selectorLabels" . | nindent 10 }}
          app.kubernetes.io/component: {{ $.name }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
