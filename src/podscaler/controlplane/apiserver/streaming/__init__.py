"""Streams: watches, logs, exec, attach, port-forward.

Reading order: `streams` has watches; `pod_sessions` exec and attach.
May import: `controlplane.apiserver.http` and below.
"""
