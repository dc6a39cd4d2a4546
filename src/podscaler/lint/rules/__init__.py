"""The rules, one module for each theme.

Reading order: `validity` first.
May import: `lint.model`.
"""
