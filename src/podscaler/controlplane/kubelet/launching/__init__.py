"""How a process is started: launcher, mounts, limits, users, translation of low ports.

Reading order: `launch_plan` says how; `launcher` is the small program that does it.
May import: `controlplane.kubelet.processes` and below.
"""
