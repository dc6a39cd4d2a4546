"""Service, Endpoints, EndpointSlice, Ingress, IngressClass, NetworkPolicy.

Reading order: `service` is the largest; `service_update` carries allocated values over to an update.
May import: `api.resource` and below.
"""
