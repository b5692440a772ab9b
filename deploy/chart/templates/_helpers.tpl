{{/* Pools are objects of a Sextant lab, and only there has a simulated Pod anything behind it. */}}
{{- define "sextant.requireLab" -}}
{{- if not (.Capabilities.APIVersions.Has "sextant.dev/v1alpha1") -}}
{{- fail "this cluster is no Sextant lab (it does not serve sextant.dev/v1alpha1): start one with `sextant up`; for `helm template` add --api-versions sextant.dev/v1alpha1" -}}
{{- end -}}
{{- end -}}

{{- define "sextant.labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* "A=true,B=false", by name. */}}
{{- define "sextant.featureGates" -}}
{{- $pairs := list -}}
{{- range $name, $on := (.Values.draDriver).featureGates -}}
{{- $pairs = append $pairs (printf "%s=%t" $name $on) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{/*
The workloads of NVIDIA's GPU operator v26.7 in a cluster that allocates by DRA: names, containers
and the nodes they run on (its chart, and manifests/ of its source). `nodes` is "gpu" for nodes where
node feature discovery has seen an NVIDIA card, "all" for every node, "any" for any one.
*/}}
{{- define "sextant.operatorWorkloads" -}}
- {name: gpu-operator, kind: Deployment, nodes: any, containers: [gpu-operator]}
{{- if (.Values.nfd).enabled }}
- {name: {{ .Release.Name }}-node-feature-discovery-gc, kind: Deployment, nodes: any, containers: [gc]}
- {name: {{ .Release.Name }}-node-feature-discovery-master, kind: Deployment, nodes: any, containers: [master]}
- {name: {{ .Release.Name }}-node-feature-discovery-worker, kind: DaemonSet, nodes: all, containers: [worker]}
{{- end }}
{{- if (.Values.dcgmExporter).enabled }}
- {name: nvidia-dcgm-exporter-dra, kind: DaemonSet, nodes: gpu, containers: [nvidia-dcgm-exporter-dra]}
{{- end }}
{{- if ((.Values.draDriver).computeDomains).enabled }}
- {name: nvidia-dra-driver-controller, kind: Deployment, nodes: any, containers: [compute-domain], gates: true}
- {name: nvidia-dra-driver-kubelet-plugin, kind: DaemonSet, nodes: gpu, containers: [gpus, compute-domains], gates: true}
{{- else }}
- {name: nvidia-dra-driver-kubelet-plugin, kind: DaemonSet, nodes: gpu, containers: [gpus], gates: true}
{{- end }}
- {name: nvidia-dra-validator, kind: DaemonSet, nodes: gpu, containers: [nvidia-dra-validator]}
{{- end -}}
