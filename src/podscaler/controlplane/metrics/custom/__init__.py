"""Serves custom and external metrics from ConfigMaps, and of pods that `metrics.scraped` scrapes (docs/metrics.md).

Reading order: `apis` is the entry point; `config_maps` and `parsing` read ConfigMaps; `lookup` computes the values of
queries, with `association` for the pods of Services, Deployments, Ingresses and namespaces.
May import: `controlplane.metrics.resource` and below.
"""
