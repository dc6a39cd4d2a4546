"""Certificates, keys and kubeconfigs, in files with mode 0600.

Reading order: `secret_files` reads and writes files; `certificates` has the certificate authority; `front_proxy`,
`signing_key`, `kubeconfig` use them.
May import: `api`, `base`.
"""
