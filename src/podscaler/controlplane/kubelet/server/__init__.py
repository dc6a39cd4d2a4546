"""The HTTPS endpoints of the node: /metrics/resource and /stats/summary.

Entry point: `node_server.NodeServer`; the wiring of `up` gives it the pages by path.
Reading order: `node_server`, `node_access`, then the pages `resource_metrics` and `stats_summary`.
May import: `controlplane.auth`, `controlplane.metrics` and below, and `controlplane.credentials`.
"""
