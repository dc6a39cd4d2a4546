"""The Kubernetes API as pure data: wire types, decoding, defaults, validation, conversion, tables, OpenAPI.

Reading order: the packages in the order in which they build on each other: `text`, `machinery`, `schema`, `protobuf`,
`typed`, `managed_fields`, `resource`, `cel`, `crd`, `kinds`, `openapi`.
May import: `base`.
"""
