"""Server-side apply: the owners of fields (metadata.managedFields), comparison, merging, conflicts.

Entry point: `managed_kinds`, with the operations that the server uses.
Reading order: `field_sets`, `field_types` and `managers`, then `updating` (create, update, patch) and `applying`.
May import: `api.schema` and below.
"""
