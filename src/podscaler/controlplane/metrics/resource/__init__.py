"""CPU and memory of containers, sampled from processes.

Reading order: `sampler` is the entry point.
May import: `controlplane.registry` and below.
"""
