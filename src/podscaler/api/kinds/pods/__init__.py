"""Resource definition of Pod, and pod specs, alone or in a template: defaults, validation, warnings, admission, table.

Reading order: `pod` is the record; `pod_validation` calls the other validations; `pod_admission`, `pod_classes` and
`pod_limits` do the work of Kubernetes' admission plugins.
May import: `api.kinds.volumes` and below.
"""
