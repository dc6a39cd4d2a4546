"""Makes the OpenAPI v2 and v3 documents of the served API.

Entry point: `openapi.documents`.
Reading order: `openapi`, `openapi_paths`, `openapi_parameters`; `openapi_definitions` is OpenAPI v2.
May import: `api.crd` and below.
"""
