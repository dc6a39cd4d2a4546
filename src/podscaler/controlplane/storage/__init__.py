"""The store: objects in memory, durable in SQLite, with a change log for watches; backup and restore.

Entry point: `store.open_store`; `backup.write` and `restore.restore` for the commands.
Reading order: `store`, `transactions` and `entries`; `journal` and `database_file` are SQLite; `change_log`, `watching`
and `listing` serve watches and lists.
May import: `api`, `base`.
"""
