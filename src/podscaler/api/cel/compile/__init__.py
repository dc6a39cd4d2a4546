"""Compiles the text of an expression to a type-checked program.

Entry point: `programs.compiled`.
Reading order: `programs`, then the phases: `lexing`, `parsing` with `macros`, `checking`, `literals`, `planning`.
May import: `api.cel.library` and below.
"""
