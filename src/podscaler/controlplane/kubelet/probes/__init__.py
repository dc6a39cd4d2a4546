"""Probes and lifecycle hooks.

Reading order: `handlers` carries out; `probe_loop` repeats; `http_check` sends requests.
May import: `controlplane.kubelet.launching` and below.
"""
