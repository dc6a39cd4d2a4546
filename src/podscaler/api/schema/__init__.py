"""Facts about the Kubernetes API types (fields, types, defaults, merge keys), and the decoding of objects by them.

Reading order: `schema` loads the facts in `data`; `decoding` is the entry point for objects of clients; `decode_plan`
makes the decoders.
May import: `base`, `api.text`, `api.machinery`.
"""
