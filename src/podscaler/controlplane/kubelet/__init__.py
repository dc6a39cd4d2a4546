"""The kubelet: runs the pods that are bound to the node as processes of this machine.

Entry point: `node_agent.NodeAgent`.
Reading order: `node_agent`; `pods.pod_worker`; `containers.container_run`; then the packages that these use.
`server` has the endpoints of the node.
May import: `controlplane.scheduler`, `controlplane.network.addresses`, `controlplane.auth`, `controlplane.metrics`,
`controlplane.registry` and below, and `controlplane.credentials`.
"""
