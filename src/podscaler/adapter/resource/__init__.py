"""Provides the usage of pods and nodes from the kubelets' /metrics/resource, in place of metrics-server.

Entry points: `kubelet_metrics.KubeletMetrics` reads the kubelets, `kubelet_usage.KubeletUsage` serves the result.
Reading order: `kubelet_points`, `usage_storage`, `node_targets`, `kubelet_client`, `scraping`, `kubelet_metrics`,
`kubelet_usage`.
May import: `adapter.providers` and below, `kube`, `api`, `base`.
"""
