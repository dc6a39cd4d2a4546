"""Basics without Kubernetes: clock, errors, work queue, concurrency, HTTP server, supervision of tasks, version.

Reading order: `clock` and `errors`, which all other packages use; each other module stands alone.
May import: nothing of podscaler.
"""
