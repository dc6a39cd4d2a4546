"""The Common Expression Language as Kubernetes uses it.

Reading order: From below: `values`, `library`, `compile`.
May import: `api.machinery` and below.
"""
