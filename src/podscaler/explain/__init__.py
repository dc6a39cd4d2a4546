"""Traces in words, and what-if: why a decision came out as it did.

Reading order: `explained` is the entry point; `sentence` and `steps` make the text.
May import: `core` and below.
"""
