"""Custom resources as pure functions: from a CustomResourceDefinition to the records that serve its objects.

Entry point: `records.of`.
Reading order: `records`, `structural` (the schema as a tree), `decoding` with `pruning` and `defaulting`, `validation`
with `constraints`, then `rules` (CEL).
May import: `api.cel`, `api.resource` and below.
"""
