"""The controller's HTTP endpoints, the permissions it checks at its start, and waiting for the API server.

Reading order: `serving` serves /metrics, /healthz and /readyz.
May import: `controller.options` and below.
"""
