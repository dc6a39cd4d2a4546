"""ConfigMap, Secret, Event, Lease, Namespace, Node, ServiceAccount and the kinds of metrics.k8s.io.

Reading order: each module has the records of one or two kinds; `key_pairs` checks the keys of TLS Secrets.
May import: `api.resource` and below.
"""
