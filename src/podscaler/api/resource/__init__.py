"""The record that describes a served kind, and common code of kinds: checks of fields, metadata, status, scale, tables.

Reading order: `resources` defines the record that every module of `api.kinds` fills in; `checks` and `label_selector`
validate fields, `metadata` and `status_subresource` the parts that all objects have; `tables` and `scale_mappings` make
the usual printers and scales; `api_errors` has the Status errors of the API server.
May import: `api.schema`, `api.managed_fields` and below.
"""
