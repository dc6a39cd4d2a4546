"""Pods: a worker for each pod, which computes the next actions, starts containers and writes the pod's status.

Entry points: `pod_worker.PodWorker`, `simulated_pod.SimulatedPod`.
Reading order: `pod_worker`; `pod_actions` (what to do next); `container_setup` (how to start); `pod_status`.
May import: `controlplane.kubelet.containers` and below.
"""
