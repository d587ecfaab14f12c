{{/*
A component's Deployment, Service and, if it keeps files, PersistentVolumeClaim. Parameters:
root: the chart's context
name: the component's name
port: its port
values: its section of the chart's values
folder: the path at which its files are mounted; unset if it keeps none
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
    {{- if $.folder }}
    type: Recreate
    {{- else }}
    # The new pod stands by until the old one gives up its lease.
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
    {{- end }}
  selector:
    matchLabels:
      {{- include "databus.selectorLabels" . | nindent 6 }}
      app.kubernetes.io/component: {{ $.name }}
  template:
    metadata:
      labels:
        {{- include "databus.labels" . | nindent 8 }}
        app.kubernetes.io/component: {{ $.name }}
      annotations:
        checksum/config: {{ include "databus.config" . | sha256sum }}
        {{- with .Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      serviceAccountName: {{ include "databus.serviceAccountName" . }}
      automountServiceAccountToken: {{ not (empty (include "databus.kubernetesLease" (dict "root" . "name" $.name))) }}
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
        - name: {{ $.name }}
          image: {{ with .Values.image.registry }}{{ . }}/{{ end }}{{ .Values.image.repository }}-{{ $.name }}:{{ .Values.image.tag | default .Chart.AppVersion }}
          imagePullPolicy: {{ .Values.image.pullPolicy }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          {{- with .Values.env }}
          env:
            {{- toYaml . | nindent 12 }}
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
            {{- toYaml . | nindent 12 }}
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
          configMap:
            name: {{ $fullname }}
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
              {{- include "databus.selectorLabels" . | nindent 14 }}
              app.kubernetes.io/component: {{ $.name }}
      {{- end }}
      {{- with .Values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels:
    {{- include "databus.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $.name }}
spec:
  {{- if eq $.name "dump-api" }}
  # The only pod: while it is not ready, its dumps can still be read and deleted.
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
  accessModes: [ReadWriteOnce]
  {{- with .values.persistence.storageClassName }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests:
      storage: {{ .values.persistence.size }}
{{- end }}
{{- end }}
