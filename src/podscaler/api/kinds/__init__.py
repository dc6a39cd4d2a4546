"""The built-in kinds: their records with defaults, validation, conversion, update strategies and tables.

Reading order: `catalog` lists all records; each package has the kinds of one area.
May import: `api.crd` and below.
"""
