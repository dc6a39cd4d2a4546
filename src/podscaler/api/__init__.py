"""The Kubernetes API as pure data: wire types, decoding, defaults, validation, conversion, tables, OpenAPI.

Reading order: The packages from below: `text`, `machinery`, `schema`, `typed`, `resource`, `managed_fields`, `cel`,
`crd`, `kinds`, `openapi`.
May import: `base`.
"""
