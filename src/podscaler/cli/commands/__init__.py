"""Commands of one module: backup and restore, controller, convert, crd, migrate, replay.

Reading order: Each module is a command, except `all_pages`, `data_dir` and `manifests`, which several commands use.
May import: everything below `cli`.
"""
