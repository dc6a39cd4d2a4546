"""Pods: the worker of each, its status, conditions and events, simulated pods.

Reading order: `pod_worker` first; `lifecycle` decides what to do next.
May import: `controlplane.kubelet.containers` and below.
"""
