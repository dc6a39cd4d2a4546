"""Commands of one module: adapter, backup and restore, controller, convert, crd, migrate, record, replay.

Reading order: Each module is a command, except `all_pages` and `data_dir`, which several commands use.
May import: everything below `cli`.
"""
