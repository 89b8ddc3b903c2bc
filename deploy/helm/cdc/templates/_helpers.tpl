{{- define "cdc.labels" -}}
app.kubernetes.io/name: cdc
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "cdc.name" -}}
{{- printf "%s-%s" .root.Release.Name .name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "cdc.secret" -}}
{{- .program.existingSecret | default (include "cdc.name" .) }}
{{- end }}
