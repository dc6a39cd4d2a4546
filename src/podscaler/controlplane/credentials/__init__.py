"""Certificates, keys and kubeconfigs, in files with mode 0600.

Reading order: `certificates` makes the authority; `secret_files` writes.
May import: `api`, `base`.
"""
