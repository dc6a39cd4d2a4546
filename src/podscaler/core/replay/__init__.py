"""Recorded syncs decided again.

Reading order: `replay` is the entry point.
May import: `core` and below.
"""
