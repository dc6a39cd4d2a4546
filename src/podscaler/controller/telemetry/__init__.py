"""Prometheus metrics, traces, and the health of the API server as the controller's requests show it.

Reading order: `telemetry` has the metrics of kube-controller-manager; `server_health` logs faults once.
May import: `controller.informers` and below.
"""
