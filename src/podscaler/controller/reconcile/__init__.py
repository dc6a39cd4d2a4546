"""One sync of one autoscaler: facts, decision, writes, reports.

Entry point: `reconcile`. Reading order: `observe` collects facts, `status` writes, `reporting` and `events` report;
`state` is the state between syncs.
May import: `controller.coexistence` and below, `metrics`, `core`.
"""
