"""A small Heapster: the part of its API that autoscalers and users of Kubernetes 1.1 to 1.10 read.

Entry point: `endpoint.HeapsterEndpoint`; `model` computes the responses, `service` is the
Service by which it is found.
May import: `controlplane.metrics.resource`, `controlplane.registry` and below.
"""
