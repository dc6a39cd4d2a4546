"""Values, types and syntax trees of CEL expressions, their errors, and the cost budget of an evaluation.

Reading order: `types`, `syntax_tree` and `values`; `errors`, `issues`, `budget` and `numbers` stand alone.
May import: `api.machinery` and below.
"""
