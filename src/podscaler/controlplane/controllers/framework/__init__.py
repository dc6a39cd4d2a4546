"""Building blocks of controllers: control loop, indexes of keys, ownership, pod creation and deletion, revisions.

Reading order: `control_loop` and its `Reconciler` first; then `owner_index` and `claims`, `pod_control`.
May import: `controlplane.registry` and below.
"""
