{{- define "podscaler.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "podscaler.selector" -}}
app.kubernetes.io/name: podscaler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "podscaler.labels" -}}
{{ include "podscaler.selector" . }}
app.kubernetes.io/component: controller
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "podscaler.account" -}}
{{- .Values.serviceAccount.name | default (include "podscaler.name" .) }}
{{- end }}

{{- define "podscaler.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "podscaler.adapterSelector" -}}
app.kubernetes.io/name: podscaler-adapter
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "podscaler.adapterLabels" -}}
{{ include "podscaler.adapterSelector" . }}
app.kubernetes.io/component: adapter
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "podscaler.daskSelector" -}}
app.kubernetes.io/name: podscaler-dask
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "podscaler.daskLabels" -}}
{{ include "podscaler.daskSelector" . }}
app.kubernetes.io/component: dask
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
