"""Checks autoscalers and their workloads, in manifests and clusters, by rules.

Reading order: `linter` is the entry point; `rulebook` lists the rules.
May import: `core`, `api`, `base`.
"""
