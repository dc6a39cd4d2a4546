"""The API objects by kind: all reads and writes of HTTP handlers, controllers and node.

Entry points: `registry.Registry` for controllers and node, `objects.Objects` for the API server.
Reading order: `registry`, `objects`, `object_writer` (one write), `object_preparation`, `deletion`; `field_managers`
tracks managedFields; `providers` and `pod_connections` are the interfaces of logs, metrics and sessions.
May import: `controlplane.storage` and below.
"""
