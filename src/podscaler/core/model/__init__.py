"""The facts that a decision is made from, and its trace, as data.

Reading order: `model`, `spec`, `settings`, `history`, `trace`.
May import: `api`, `base`.
"""
