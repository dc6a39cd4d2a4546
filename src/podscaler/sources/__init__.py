"""Reads external metrics directly from other systems (Redis, Kafka, ...), as MetricSources (podscaler.dev) declare.

Entry points: `direct_metrics.DirectMetricsSource`, which the controller puts before the external metrics API, and
`direct_metrics.DirectSources.find_values`, which serves (namespace, name, selector) for any other caller.
Reading order: `protocol` (what a system implements), `metric_source` (the decoded object), `metric_numbers`,
`credentials`, `source_types` (built-in systems and entry points), `fair_slots`, `open_sources` (connections),
`direct_metrics`; `informer` and `status` work on the API server; `systems` has a module for each system;
`cluster_sources` wires them.
May import: `metrics`, `kube`, `api`, `base`.
"""
