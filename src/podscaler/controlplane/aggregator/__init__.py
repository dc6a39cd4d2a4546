"""API servers beside ours, registered by APIServices: availability, discovery, connections.

Reading order: `layer` is the entry point.
May import: `controlplane.registry`, `controlplane.auth` and below.
"""
