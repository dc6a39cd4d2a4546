"""Usage of pods and nodes from the kubelets' /metrics/resource, in the place of metrics-server.

Entry points: `scraping.KubeletScraper` reads the kubelets into a `storage.UsageStorage`.
Reading order: `points`, `storage`, `node_targets`, `kubelet_client`, `scraping`.
May import: `kube`, `api`, `base`.
"""
