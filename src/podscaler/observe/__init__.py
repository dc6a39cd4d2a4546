"""What a view shows of the autoscalers of a cluster: their states, their history, explanations and what-if.

Entry point: `live_cluster.LiveCluster`. Reading order: `views` (the data that views get); `sync_points`,
`sync_columns`, `kept_syncs` and `decision_history` (what is kept of each sync); `health`, `autoscaler_rows`,
`pod_views`, `object_reader` and `what_if` (views made of it); `view_changes`, `live_cluster`.
May import: `controller`, `lint`, `explain`, `kube`, `core` and below; nothing of HTTP servers, HTML or terminals.
"""
