"""Custom and external metrics with values from ConfigMaps (docs/metrics.md).

Reading order: `apis` is the entry point; `config_maps` and `parsing` read ConfigMaps; `lookup` answers queries.
May import: `controlplane.metrics.resource` and below.
"""
