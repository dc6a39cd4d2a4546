"""The Common Expression Language as Kubernetes uses it.

Entry point: `compile.programs.compiled`.
Reading order: bottom up, `values`, `library`, `compile`.
May import: `api.machinery` and below.
"""
