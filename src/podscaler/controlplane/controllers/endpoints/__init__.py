"""Controllers of Endpoints and EndpointSlices.

Reading order: `endpoints` finds the pods behind a Service; `slices` and `endpoint_object` make the objects.
May import: `controlplane.controllers.framework` and below.
"""
