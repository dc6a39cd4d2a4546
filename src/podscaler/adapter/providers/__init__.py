"""Values of metrics from Prometheus, for the server of the metrics APIs.

Entry points: `metric_relisting.MetricRelisting`, `custom_metrics.CustomMetrics`, `external_metrics.ExternalMetrics`,
`resource_metrics.ResourceMetrics`.
May import: `adapter.naming`, `adapter.prometheus`, `adapter.cluster`, `adapter.config`.
Reading order: `protocols`, `metric_registry`, `metric_relisting`, `query_cache`, `object_values`, `custom_metrics`,
`external_metrics`, `resource_metrics`.
"""
