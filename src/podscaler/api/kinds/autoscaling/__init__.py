"""HorizontalPodAutoscaler in all its versions, with conversion between them, PodAutoscaler and MetricSource.

Reading order: `hpa` is the record; `conversion` converts; `pod_autoscaler` and `metric_source` are the definitions
of our own kinds.
May import: `api.resource` and below.
"""
