"""The aggregation layer: makes other API servers, which are registered by APIServices, part of this one.

Reading order: `aggregation_layer` is the entry point; `remote_versions` is the index that every request reads;
`availability` and `remote_documents` are its controllers.
May import: `controlplane.registry`, `controlplane.auth`, `controlplane.controllers` and below.
"""
