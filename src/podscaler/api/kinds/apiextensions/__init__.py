"""CustomResourceDefinition and APIService.

Reading order: `customresourcedefinition` is the record; the rest validates it.
May import: `api.crd` and below.
"""
