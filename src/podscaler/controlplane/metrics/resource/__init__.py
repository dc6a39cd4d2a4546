"""CPU and memory of containers, sampled from processes.

Reading order: `sampler` is the entry point; `processes` reads, `rates` computes, `totals` accumulates, `simulated` is
for simulated pods.
May import: `controlplane.registry` and below.
"""
