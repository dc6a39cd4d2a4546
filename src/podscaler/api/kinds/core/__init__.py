"""ConfigMap, Secret, Event, Lease, Namespace, Node, ServiceAccount and the kinds of metrics.k8s.io.

Reading order: Each module is one kind.
May import: `api.resource` and below.
"""
