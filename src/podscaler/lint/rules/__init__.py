"""The lint rules, one module for each theme; `podscaler.lint.rulebook` lists them, `linter` runs them.

Reading order: `validity` first.
May import: `lint.model`.
"""
