"""Converts objects to autoscaling/v1 Scale and back, for the subresource `scale`.

`registry.objects` and `scale_field_managers` call it: a Deployment with 3 replicas is a Scale with `spec: {replicas:
3}` and `status: {replicas, selector}`; a written Scale sets the Deployment's replicas. Where a kind has its replicas is
its `ScaleMapping`.

Source: docs/spec/api.md 5 (Scale subresource); tests/conformance/golden/scale.jsonl.
"""

from podscaler.api.machinery import field
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource, ScaleMapping

REPLICAS_UNSET = -(2**31)
"""The replicas in the Scale of a custom resource without replicas: an update must set them."""

_SCALE_METADATA_FIELDS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def mapping(resource: Resource) -> ScaleMapping:
    """The scale mapping of a kind. Raises KeyError for a kind without scale, which the router excludes."""
    if resource.scale is None:
        raise KeyError(f"{resource.key} has no scale")
    return resource.scale


def served_scale(resource: Resource, obj: Object) -> Object:
    """The Scale of an object for clients. Raises StatusError 500 for a custom resource without replicas."""
    if mapping(resource).replicas(obj) is None:
        path = mapping(resource).custom_path
        raise api_errors.internal_error(f'the spec replicas field "{path}" does not exist')
    return scale_of(resource, obj)


def scale_of(resource: Resource, obj: Object) -> Object:
    """The Scale of an object, with `REPLICAS_UNSET` for a custom resource without replicas."""
    scale_mapping = mapping(resource)
    stored_replicas = scale_mapping.replicas(obj)
    replicas = REPLICAS_UNSET if stored_replicas is None else stored_replicas
    status: Object = {"replicas": scale_mapping.status_replicas(obj)}
    selector = scale_mapping.selector(obj)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: obj["metadata"][name] for name in _SCALE_METADATA_FIELDS if name in obj["metadata"]},
        "spec": {"replicas": replicas} if replicas else {},  # as Go, which omits 0
        "status": status,
    }


def apply_scale(resource: Resource, obj: Object, scale: Object) -> None:
    """Set the replicas of `obj` from a Scale, and its resourceVersion, which the update compares with the stored one.

    Raises StatusError 422 for a negative number (for custom resources their own validation does), 400 for a custom
    resource without replicas.
    """
    metadata = obj["metadata"]
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    custom_path = mapping(resource).custom_path
    if custom_path and replicas == REPLICAS_UNSET:  # only custom resources have a path
        raise api_errors.bad_request(f'the spec replicas field "{custom_path}" cannot be empty')
    if replicas < 0 and not custom_path:
        error = field.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise field.invalid_object(group="autoscaling", kind="Scale", name=metadata["name"], errors=[error])
    mapping(resource).set_replicas(obj, replicas)
    sent_version = (scale.get("metadata") or {}).get("resourceVersion", "")
    if sent_version or not custom_path:  # custom resources, which must have one, keep the stored version
        metadata["resourceVersion"] = sent_version
