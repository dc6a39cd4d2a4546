"""Scales of targets: read from watched workloads, written through the scale subresource.

Reading order: `target` reads and writes; `target_informer` saves requests.
May import: `kube`, `core`, `api`, `base`.
"""
