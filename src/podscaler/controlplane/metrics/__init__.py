"""The metrics APIs of the control plane: resource metrics of processes, custom and external metrics, and Heapster.

Entry points: `resource.sampler.Sampler` and `custom.apis.MetricValues`.
Reading order: `resource`, then `custom`.
May import: `controlplane.registry` and below.
"""
