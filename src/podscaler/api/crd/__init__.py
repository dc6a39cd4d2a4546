"""Custom resources: makes the records that serve the objects of a CustomResourceDefinition.

Entry point: `records.of`.
Reading order: `records`, `structural` (the schema as a tree), `decoding` with `pruning` and `defaulting`, `validation`
with `constraints`, then `rules` (CEL), then `webhook_conversion`.
May import: `api.cel`, `api.resource` and below.
"""
