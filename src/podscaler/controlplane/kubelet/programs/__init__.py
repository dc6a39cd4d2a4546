"""Programs of the built-in images; each module is one program, which runs as a process of its own.

`web_server` and `go_flags` are shared by them.

May import: the standard library.
"""
