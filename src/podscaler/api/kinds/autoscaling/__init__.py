"""HorizontalPodAutoscaler in all its versions, with conversion between them, and the custom resource PodAutoscaler.

Reading order: `hpa` is the record; `hpa_v1` and its like convert one version each; `conversion` lists losses;
`pod_autoscaler` is the definition of PodAutoscaler.
May import: `api.resource` and below.
"""
