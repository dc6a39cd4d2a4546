"""Service, Endpoints, EndpointSlice, Ingress, IngressClass, NetworkPolicy.

Reading order: `service` is the largest; `service_update` says what an update keeps.
May import: `api.resource` and below.
"""
