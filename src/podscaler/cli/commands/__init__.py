"""Commands that fit into a module: backup, restore, convert, crd, migrate, replay, completion.

Reading order: Each module is one command, or a helper of several.
May import: everything below `cli`.
"""
