"""Field ownership of server-side apply: sets of fields, comparison, merging, conflicts.

Entry point: `kinds`, with the operations that the server uses.
Reading order: `field_sets` and `types`, `managers`, then `updating` (create, update, patch) and `applying` (apply).
May import: `api.schema` and below.
"""
