"""The HTTPS endpoints of the node: those of a kubelet for metrics, usage, pods and health.

Entry point: `node_server.NodeServer`, to which `podscaler.cli.up.machine` passes the pages by path.
Reading order: `node_server`, `node_access`, then the pages `resource_metrics`, `cadvisor_metrics` (both
rendered by `metrics_text`), `stats_summary` and `kubelet_pages`.
May import: `controlplane.auth`, `controlplane.metrics` and below, and `controlplane.credentials`.
"""
