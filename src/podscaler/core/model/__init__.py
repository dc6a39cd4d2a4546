"""The facts that a decision is made from, and its trace, as data.

Reading order: `observation`, `spec`, `settings`, `history`, `trace`.
May import: `api`, `base`.
"""
