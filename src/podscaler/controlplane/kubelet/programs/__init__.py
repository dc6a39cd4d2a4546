"""Programs of the built-in images; each runs as a process of its own.

Reading order: Each module is one program.
May import: the standard library.
"""
