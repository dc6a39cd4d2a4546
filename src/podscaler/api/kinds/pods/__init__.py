"""Pod specs, alone or in a template: defaults, validation, warnings, admission, table.

Reading order: `pod` is the record; `pod_validation` calls the other validations; `pod_admission`, `pod_classes` and
`pod_limits` are what admission plugins do.
May import: `api.kinds.volumes` and below.
"""
