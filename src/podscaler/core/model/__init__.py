"""The facts that a decision is made from, and its trace, as data.

Reading order: `model`, `pod_list`, `spec`, `settings`, `history`, `trace`.
May import: `api`, `base`.
"""
