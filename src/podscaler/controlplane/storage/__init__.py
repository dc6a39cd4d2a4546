"""The store: objects in memory, durable in SQLite, with a change log for watches; backup and restore.

Reading order: `store` first; `journal` is SQLite; `change_log` and `watching` serve watches.
May import: `api`, `base`.
"""
