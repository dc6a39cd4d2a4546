"""The records of CustomResourceDefinition and APIService, and the validation of definitions.

Reading order: `customresourcedefinition` and `apiservice` are the records; `crd_validation` validates a definition and
calls the validation of its schemas; `crd_conditions` sets names and conditions.
May import: `api.crd` and below.
"""
