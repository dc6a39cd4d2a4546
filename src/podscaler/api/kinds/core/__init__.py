"""Records of ConfigMap, Secret, Event, Lease, Namespace, Node, ServiceAccount, certificates.k8s.io and metrics.k8s.io.

Reading order: each module has the records of one or two kinds; `lease` is the smallest and shows the parts of one.
May import: `api.resource` and below.
"""
