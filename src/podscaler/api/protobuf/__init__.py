"""Kubernetes protobuf bodies, encoded and decoded by the schema.

Entry point: `protobuf.decode` and `protobuf.encode`.
Reading order: `protobuf`, `protobuf_json`, `protobuf_types`.
May import: `api.schema` and below.
"""
