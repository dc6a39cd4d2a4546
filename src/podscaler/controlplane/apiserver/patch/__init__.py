"""JSON merge patch, JSON patch and strategic merge patch.

Reading order: `strategic` is the largest.
May import: `api`, `base`.
"""
