"""Compiles the text of a CEL expression to a type-checked program.

Entry point: `programs.compiled`.
Reading order: `programs`, then the phases: `lexing`, `parsing` with `macros`, `checking`, `literal_checks`, `planning`.
May import: `api.cel.library` and below.
"""
