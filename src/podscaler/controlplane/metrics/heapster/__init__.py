"""A small Heapster: the part of its API that autoscalers and users of Kubernetes 1.1 to 1.10 read.

Entry point: `endpoint.HeapsterEndpoint`. Reading order: `model` (computes the responses), `endpoint`, `service` (the
Service by which clients find it).
May import: `controlplane.metrics.resource`, `controlplane.registry` and below.
"""
