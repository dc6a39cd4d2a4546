"""Clients of the metrics APIs: resource, custom, external.

Entry points: `fetched.fetch` for one entry of an autoscaler's spec, `api.APIMetricsSource` for the requests, or
`heapster.HeapsterMetricsSource` in clusters with Heapster; the controller wraps the latter in the sources of
`concurrency_limiter`, `shared_queries` and `listed`.
Reading order: `queries` (the queries and the protocol MetricsSource), `api`, `heapster`, `fetched`, then the wrappers.
May import: `kube`, `core`, `api`, `base`.
"""
