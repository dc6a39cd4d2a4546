"""Launching: how a container's process is started, with mounts, limits, another user and translated ports.

Entry points: `container_config.process_spec`, `capabilities.detect`, `image_map.ImageMap`.
Reading order: `container_config`; `launcher` (the program that sets up a container), `mount_tree`; `capabilities`.
May import: `controlplane.kubelet.processes` and below, `controlplane.network.addresses`.
"""
