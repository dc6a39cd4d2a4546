"""A subset of Go's text/template, in which the rules of the adapter are written.

Entry point: `template.Template`.
May import: nothing else of `adapter`.
Reading order: `lexing`, `parsing`, `functions`, `template`.
"""
