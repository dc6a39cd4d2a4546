"""Programs of the built-in images; each module is one program, which runs as a process of its own.

May import: the standard library.
"""
