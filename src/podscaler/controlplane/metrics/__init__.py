"""The metrics APIs of the control plane: resource metrics of processes, custom metrics that ConfigMaps state.

Reading order: `resource` and `custom`.
May import: `controlplane.registry` and below.
"""
