"""Controllers of Endpoints and EndpointSlices.

Entry points: the `Reconciler` classes in `endpoint_controller`, `endpointslices` and `mirroring`.
Reading order: `endpoints` computes the endpoints of a Service; `slices` and `endpoint_object` make the objects.
May import: `controlplane.controllers.framework` and below.
"""
