"""HorizontalPodAutoscaler in all its versions, with conversion between them, PodAutoscaler and MetricSource.

Reading order: `hpa` is the record; `hpa_v1` and its like convert one version each; `conversion` lists losses;
`pod_autoscaler` and `metric_source` are the definitions of our own kinds.
May import: `api.resource` and below.
"""
