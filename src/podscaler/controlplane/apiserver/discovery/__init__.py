"""Discovery and OpenAPI documents over HTTP.

Reading order: `discovery` is the entry point; `metric_apis`; `openapi_v3`, `openapi_v2`.
May import: `controlplane.apiserver.handlers` and below.
"""
