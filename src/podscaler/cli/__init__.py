"""The command line: one module or package for each command.

Reading order: `main` lists the commands and imports one when it runs; `options` has the flags that commands share.
May import: everything: it wires the parts.
"""
