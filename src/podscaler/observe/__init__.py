"""What a view shows of the autoscalers of a cluster.

Entry point: `health.of`, the state of an autoscaler in a word.
May import: `controller`, `lint`, `explain`, `kube`, `core` and below; nothing of HTTP servers, HTML or terminals.
"""
