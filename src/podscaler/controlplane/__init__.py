"""The embedded control plane: API server, controllers, node, for one machine.

Reading order: `apiserver`, `registry`, `storage`, then `controllers`, `network` and `kubelet`; `scheduler` binds pods,
`controller_manager` runs the controllers.
May import: `api`, `base`; never `kube`, `core` or `metrics`.
"""
