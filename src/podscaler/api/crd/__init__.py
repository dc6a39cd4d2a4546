"""Custom resources as pure functions: from a CustomResourceDefinition to records by which the server serves its
objects.

Reading order: `records` is the entry point; `structural` is the schema as a tree; `validation`, `pruning` and
`defaulting` work on it.
May import: `api.cel`, `api.resource` and below.
"""
