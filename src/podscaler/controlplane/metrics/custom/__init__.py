"""Custom and external metrics whose values ConfigMaps state.

Reading order: `apis` is the entry point; `parsing` has the format.
May import: `controlplane.metrics.resource` and below.
"""
