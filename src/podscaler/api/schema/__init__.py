"""The table of facts about the Kubernetes API types, and decoding by it.

Reading order: `schema` loads the facts in `data`; `decoding` is the entry point for objects of clients; `decode_plan`
makes the decoders.
May import: `base`, `api.text`, `api.machinery`.
"""
