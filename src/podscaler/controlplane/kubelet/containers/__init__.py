"""Containers: one start of a container from its process to its exit, and the states between starts.

Entry point: `container_run.ContainerRun`.
Reading order: `container_state`; `container_run`; `container_process`; `exec_session`.
May import: `controlplane.kubelet.logs`, `.volumes`, `.probes`, `.launching` and below.
"""
