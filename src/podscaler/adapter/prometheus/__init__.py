"""The client of Prometheus' HTTP API.

Entry point: `client.PrometheusClient`.
May import: `adapter.naming.series`.
Reading order: `connection`, `responses`, `client`, `telemetry`.
"""
