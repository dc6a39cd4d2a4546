"""Requests to one API server, errors, discovery.

Reading order: `client` first.
May import: `kube.transport`.
"""
