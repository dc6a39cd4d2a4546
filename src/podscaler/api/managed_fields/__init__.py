"""Field ownership of server-side apply: sets of fields, comparison, merging, conflicts.

Reading order: Begin with `field_sets` and `types`; `kinds` has the three operations that the server uses.
May import: `api.schema` and below.
"""
