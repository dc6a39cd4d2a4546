"""Values of which API objects are made: quantities, selectors, names, times, durations, field errors, patterns.

Reading order: each module stands alone; `quantity`, `selectors` and `field` (field errors) are used most.
May import: `base`, `api.text`.
"""
