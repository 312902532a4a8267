{{- define "mergemill.labels" -}}
app.kubernetes.io/name: mergemill
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "mergemill.selector" -}}
app.kubernetes.io/name: mergemill
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "mergemill.claim" -}}
{{ .Values.store.existingClaim | default (printf "%s-store" .Release.Name) }}
{{- end }}

{{- /* Where a pod runs, and what it mounts: all but its container. */ -}}
{{- define "mergemill.pod" -}}
serviceAccountName: {{ .Release.Name }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  fsGroup: 1000
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: store
    persistentVolumeClaim: {claimName: {{ include "mergemill.claim" . }}}
  - name: config
    configMap: {name: {{ .Release.Name }}}
  - name: tmp
    emptyDir: {}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "mergemill.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
envFrom:
  - configMapRef: {name: {{ .Release.Name }}-settings}
{{- with .Values.existingSecret }}
  - secretRef: {name: {{ . }}}
{{- end }}
volumeMounts:
  - {name: store, mountPath: {{ dir .Values.store.path }}}
  - {name: config, mountPath: /etc/mergemill, readOnly: true}
  - {name: tmp, mountPath: /tmp}
{{- end }}
