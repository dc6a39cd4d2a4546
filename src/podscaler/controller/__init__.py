"""The autoscaler against an API server: watches, work queue, reconcile loop, leases, histories.

Reading order: `controller` is the loop; then `reconcile.reconcile`, `informers`, `history`, `leaderelection`.
May import: `metrics`, `explain`, `kube`, `core`, `api`, `base`.
"""
