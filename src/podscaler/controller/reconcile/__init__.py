"""One sync of one autoscaler: inputs, decision, writes, reports.

Entry point: `reconcile`. Reading order: `observer` reads the inputs of decisions, `status_writer` writes,
`sync_reporter` and `event_recorder` report; `autoscaler_state` is the state between syncs.
May import: `controller.coexistence` and below, `metrics`, `core`.
"""
