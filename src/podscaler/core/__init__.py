"""The decision: pure, one module for each stage.

Reading order: `decide` first; then `branch`, `proposals`, `combine`, `limits`, `settle`.
May import: `api`, `base`.
"""
