"""Controllers of ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers and disruption budgets.

Entry points: one `Reconciler` class in each of `replicaset`, `statefulset`, `daemonset` and `disruption`.
Reading order: `replicaset` is the simplest; the `*_planning` modules are pure.
May import: `controlplane.controllers.framework` and below.
"""
