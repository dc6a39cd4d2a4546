"""Handlers whose responses are streams: watches, logs, exec, attach, port-forward (with SPDY inside WebSockets).

Reading order: `watch_streams` has watches; `pod_logs`; `pod_sessions` (exec, attach); `pod_ports`, `spdy_ports` and
below. May import: `controlplane.apiserver.http` and below.
"""
