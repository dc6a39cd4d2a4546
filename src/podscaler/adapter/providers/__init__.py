"""Values of metrics from Prometheus, for the server of the metrics APIs.

Entry points: `relisting.MetricRelisting`, `custom.CustomMetrics`, `external.ExternalMetrics`,
`resource.ResourceMetrics`.
May import: `adapter.naming`, `adapter.prometheus`, `adapter.cluster`, `adapter.config`.
Reading order: `protocols`, `metric_registry`, `relisting`, `query_cache`, `object_values`, `custom`, `external`,
`resource`.
"""
