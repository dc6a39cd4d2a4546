"""Prometheus metrics, traces and the health of the API server as the controller sees it.

Reading order: `telemetry` has upstream's metrics; `server_health` reports outages once.
May import: `controller.informers` and below.
"""
