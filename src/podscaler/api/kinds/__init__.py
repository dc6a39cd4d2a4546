"""The built-in kinds: one record (`api.resource.resources.Resource`) for each, with its functions.

Reading order: `catalog` lists all records; each package has the kinds of one area. `core.lease` is the smallest record
and shows the parts: `set_defaults`, `validate` (returns field errors), and RESOURCE, which ties them together.
May import: `api.crd` and below.
"""
