"""Controllers of ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers and disruption budgets.

Reading order: `replicaset` is the simplest; `*_planning` modules are pure.
May import: `controlplane.controllers.framework` and below.
"""
