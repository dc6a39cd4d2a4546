"""SPDY/3.1 of a server, without sockets, for port-forward.

Reading order: `session` is the entry point; `frames` and `headers` are the format.
May import: `base`.
"""
