"""The built-in kinds: their records with defaults, validation, conversion, update strategies and tables.

Reading order: `catalog` lists all records; each package has the kinds of one area. `core.lease` is the smallest record
and shows the parts of one: `fill` sets defaults, `validate` returns field errors, RESOURCE ties them together.
May import: `api.crd` and below.
"""
