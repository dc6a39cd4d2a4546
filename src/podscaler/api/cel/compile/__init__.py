"""From the text of an expression to a checked program that can be evaluated.

Reading order: `programs` is the entry point; lexing, parsing, checking and planning follow each other.
May import: `api.cel.library` and below.
"""
