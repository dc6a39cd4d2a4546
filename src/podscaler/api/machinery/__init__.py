"""Values that all API objects are made of: quantities, selectors, names, instants, durations, field errors,
patterns.

Reading order: Each module stands alone; `quantity`, `selectors` and `field` are used most.
May import: `base`, `api.text`.
"""
