"""The records of Service, Endpoints, EndpointSlice, Ingress, IngressClass and NetworkPolicy.

Reading order: each module has the record and the validation of one kind, except for Service: `service` is the record,
`service_validation` and `service_family_validation` validate it, `service_update` carries allocated values over.
May import: `api.resource` and below.
"""
