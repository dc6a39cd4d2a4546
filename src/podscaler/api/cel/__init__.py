"""The Common Expression Language (CEL) in the dialect of Kubernetes: compiler, function library, evaluation.

Entry point: `compile.programs.compiled`.
Reading order: bottom up, `values`, `library`, `compile`.
May import: `api.machinery` and below.
"""
