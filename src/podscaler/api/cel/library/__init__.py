"""The functions that expressions may call.

Reading order: `library` lists them all; `functions` has their signatures.
May import: `api.cel.values` and below.
"""
