"""What is wrong or dangerous in manifests and clusters, around autoscalers.

Reading order: `linter` is the entry point; `rulebook` lists the rules.
May import: `core`, `api`, `base`.
"""
