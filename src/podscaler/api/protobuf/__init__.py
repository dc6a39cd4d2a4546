"""Kubernetes protobuf bodies, read and written by the schema.

Reading order: `protobuf` is the entry point; `protobuf_types` makes the message classes.
May import: `api.schema` and below.
"""
