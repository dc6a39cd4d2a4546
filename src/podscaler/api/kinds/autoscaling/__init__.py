"""HorizontalPodAutoscaler in all its versions, with conversion between them, and PodAutoscaler.

Reading order: `hpa` is the record; `conversion` converts; `pod_autoscaler` is the definition of our own kind.
May import: `api.resource` and below.
"""
