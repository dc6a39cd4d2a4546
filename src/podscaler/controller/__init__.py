"""The autoscaler against an API server: watches, work queue, reconcile loop, leases, histories.

Entry point: `assembly.new_controller` wires a controller; `controller` runs it.
Reading order: `controller`, `worker` (a key from the queue), `reconcile.reconcile` (one sync), `work_assignment`; then
`informers`, `history`, `leaderelection`.
May import: `metrics`, `explain`, `events`, `kube`, `core`, `api`, `base`.
"""
