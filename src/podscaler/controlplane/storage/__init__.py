"""What is on disk: the data directory, the database of objects in it, its backups.

`journal` and `store` above it keep the objects of a running control plane with it (`directory`, `database`,
`reserve`); the commands `backup` and `restore` work on a directory with or without a running one. Everything here
blocks and belongs into a thread. Read `directory` first, then `database`.
"""
