"""Informers: caches of autoscalers, pods and the scales of targets, filled by watches; and the client of scales.

Entry point: `controller_informers`. Reading order: `autoscaler_informer`, `observed_objects`, `target_informer`,
`scale_client`.
May import: `controller.options`, `controller.history`, `kube`, `core`, `api`, `base`.
"""
