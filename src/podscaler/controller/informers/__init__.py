"""Informers: autoscalers, pods and the scales of targets in memory, from watches; and the client of scales.

Entry point: `controller_informers`. Reading order: `autoscaler_informer`, `observed_objects`, `target_informer`,
`scale_client`.
May import: `controller.options`, `controller.history`, `kube`, `core`, `api`, `base`.
"""
