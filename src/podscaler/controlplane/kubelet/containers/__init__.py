"""Containers: their states, processes, restarts, commands beside them.

Reading order: `container_run` is one start of a container.
May import: `controlplane.kubelet.probes`, `.logs`, `.volumes`, `.launching` and below.
"""
