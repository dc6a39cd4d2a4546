"""Probes and lifecycle hooks: carries out their handlers, and counts the results of probes.

Entry points: `handlers.HandlerRunner`, `probe_loop.run`.
Reading order: `handlers`; `http_check` and `exec_check`; `probe_tally`; `probe_loop`.
May import: `controlplane.kubelet.processes` and below.
"""
