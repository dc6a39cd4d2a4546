"""The node: runs the pods that are bound to it as real processes.

Reading order: `node_agent` is the entry point; then `pods.pod_worker`, `containers.container_run`.
May import: all packages below it, `controlplane.registry`.
"""
