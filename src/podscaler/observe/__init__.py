"""What a view shows of the autoscalers of a cluster: their states, their history, explanations and what-if.

Entry point: `live_cluster.LiveCluster`. Reading order: `views` (the data that views get), `decision_history` (what is
kept of each sync), `rows` and `details` (views made of it), `live_cluster`.
May import: `controller`, `lint`, `explain`, `kube`, `core` and below; nothing of HTTP servers, HTML or terminals.
"""
