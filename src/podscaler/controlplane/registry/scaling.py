"""The `scale` subresource: an object as autoscaling/v1 Scale, and what a changed Scale does to the object.

`Objects` calls it. Source: docs/spec/api.md 5 (Scale subresource); tests/conformance/golden/scale.jsonl.
"""

from podscaler.api.machinery import field
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource, ScaleMapping

NEVER_SET = -(2**31)
"""The replicas in the Scale of a custom resource that says nothing of them: a change must set them."""

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def mapping(resource: Resource) -> ScaleMapping:
    """How the kind maps. Raises KeyError for one that has no scale: the router knows which have."""
    if resource.scale is None:
        raise KeyError(f"{resource.key} has no scale")
    return resource.scale


def served_scale(resource: Resource, obj: Object) -> Object:
    """The Scale of an object as clients get it. Raises StatusError 500 where there must be replicas and are none."""
    if mapping(resource).replicas(obj) is None:
        path = mapping(resource).custom_path
        raise api_errors.internal_error(f'the spec replicas field "{path}" does not exist')
    return scale_of(resource, obj)


def scale_of(resource: Resource, obj: Object) -> Object:
    """The Scale of an object, with `NEVER_SET` where there are no replicas."""
    scale = mapping(resource)
    found = scale.replicas(obj)
    replicas = NEVER_SET if found is None else found
    status: Object = {"replicas": scale.status_replicas(obj)}
    selector = scale.selector(obj)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: obj["metadata"][name] for name in _METADATA if name in obj["metadata"]},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def apply_scale(resource: Resource, obj: Object, scale: Object) -> None:
    """Give `obj` the replicas of a changed Scale, and its resourceVersion, to be compared with the stored one.

    Raises StatusError 422 for a negative number (of a custom resource, its own validation does), 400 for none at all.
    """
    metadata = obj["metadata"]
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    custom_path = mapping(resource).custom_path
    if custom_path and replicas == NEVER_SET:
        raise api_errors.bad_request(f'the spec replicas field "{custom_path}" cannot be empty')
    if replicas < 0 and not custom_path:
        error = field.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise field.refusal(group="autoscaling", kind="Scale", name=metadata["name"], errors=[error])
    mapping(resource).set_replicas(obj, replicas)
    wanted = (scale.get("metadata") or {}).get("resourceVersion", "")
    if wanted or not custom_path:
        metadata["resourceVersion"] = wanted
