"""Clients of the metrics APIs: resource, custom, external.

Entry points: `metric_fetching.fetch` for one entry of an autoscaler's spec, `metrics_apis.APIMetricsSource` for the
requests, or `heapster.HeapsterMetricsSource` in clusters with Heapster; the controller wraps the latter in the sources
of `concurrency_limiter`, `shared_queries` and `listed_pod_metrics`.
Reading order: `queries` (the queries and the protocol MetricsSource), `metrics_apis`, `heapster`, `metric_fetching`,
then the wrappers.
May import: `kube`, `core`, `api`, `base`.
"""
