"""Basics without any idea of Kubernetes: clock, errors, work queue, concurrency, supervision of tasks, version.

Reading order: Read `clock` and `errors` first; everything else uses them.
May import: nothing of podscaler.
"""
