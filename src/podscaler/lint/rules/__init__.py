"""The lint rules, one module for each subject; `podscaler.lint.rulebook` lists them, `linter` runs them.

Reading order: `validity` first.
May import: `lint.model`.
"""
