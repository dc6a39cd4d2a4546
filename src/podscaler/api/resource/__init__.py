"""What a served kind is, as data, and what all kinds share: metadata rules, status subresource, scales, API errors.

Reading order: `resources` defines the record that every module of `api.kinds` fills in; `api_errors` has the Status
errors of the API server.
May import: `api.schema`, `api.managed_fields` and below.
"""
