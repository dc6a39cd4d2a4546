"""The API server of custom.metrics.k8s.io, external.metrics.k8s.io and metrics.k8s.io.

Entry point: `app.AdapterServer`.
May import: `adapter.providers` and below, `kube.serving`.
Reading order: `request_info`, `responses`, `custom_api`, `external_api`, `resource_api`, `discovery`, `access`, `app`.
"""
