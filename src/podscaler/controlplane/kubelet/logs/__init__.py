"""Logs of containers: written to bounded files, read back.

Reading order: `log_files` writes, `log_reader` reads.
May import: `controlplane.kubelet.launching` and below.
"""
