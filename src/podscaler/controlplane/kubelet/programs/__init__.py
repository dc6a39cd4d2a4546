"""Programs of the built-in images (`kubelet.launching.images`), each of which runs as a process of its own.

Entry points: `agnhost` (whose subcommands are most of the modules), `hpa_example`, `nc`, `pause`, `wget`.
`web_server` and `go_flags` are shared by them. Reading order: `go_flags`, `web_server`, then any program.

May import: the standard library, and this package; two import cryptography or PyJWT when they run.
"""
