"""Explains decisions in words from their traces, and decides again with another spec (what-if).

Entry points: `explained.explain` for one decision, `what_if.apply` and `comparison.of` for what-if.
Reading order: `explained`, `verdict` (the outcome), `sentence` and `steps` (the texts), then those of their parts.
May import: `core` and below.
"""
