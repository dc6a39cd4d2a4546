"""Discovery and OpenAPI documents over HTTP.

Reading order: `discovery` is the entry point.
May import: `controlplane.apiserver.handlers` and below.
"""
