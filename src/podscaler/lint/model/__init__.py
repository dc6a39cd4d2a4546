"""The data that rules read and return: items, autoscalers, workloads, findings.

Reading order: `reading` makes items; `lint_context` holds them all.
May import: `core`, `api`, `base`.
"""
