"""The aggregation layer: other API servers, registered by APIServices: availability, discovery, connections.

Reading order: `layer` is the entry point; `versions` is the index that every request reads.
May import: `controlplane.registry`, `controlplane.auth`, `controlplane.controllers` and below.
"""
