"""Encodes and decodes Kubernetes protobuf bodies by the facts about the API types.

Entry point: `protobuf.decode` and `protobuf.encode`.
Reading order: `protobuf`, `protobuf_json`, `protobuf_types`.
May import: `api.schema` and below.
"""
