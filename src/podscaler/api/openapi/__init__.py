"""OpenAPI v2 and v3 documents of what is served.

Reading order: `openapi` is the entry point; `openapi_paths` is the largest part.
May import: `api.crd` and below.
"""
