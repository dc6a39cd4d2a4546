"""Clients of the metrics APIs: resource, custom, external, with caching and limits.

Reading order: `source` is the protocol; `api` the three APIs.
May import: `kube`, `core`, `api`, `base`.
"""
