"""Values, types and syntax trees of expressions, with the cost budget of an evaluation.

Reading order: Begin with `types` and `syntax`.
May import: `api.machinery` and below.
"""
