"""Pod specs, alone or in a template: defaults, validation, warnings, admission, table.

Reading order: `pod` is the record; `pod_validation` calls the other validations.
May import: `api.kinds.volumes` and below.
"""
