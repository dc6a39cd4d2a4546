"""The `scale` subresource: an object as autoscaling/v1 Scale, and what a changed Scale does to the object.

`Objects` calls it. Source: spec/api.md 5; tests/conformance/golden/scale.jsonl.
"""

from podscaler.api import field
from podscaler.api.resources import Object, Resource, ScaleMapping

_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def mapping(resource: Resource) -> ScaleMapping:
    """How the kind maps. Raises KeyError for one that has no scale: the router knows which have."""
    if resource.scale is None:
        raise KeyError(f"{resource.key} has no scale")
    return resource.scale


def scale_of(resource: Resource, obj: Object) -> Object:
    """The Scale of an object."""
    scale = mapping(resource)
    replicas = scale.replicas(obj)
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

    Raises StatusError 422 for a negative number.
    """
    metadata = obj["metadata"]
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas < 0:
        error = field.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise field.refusal(group="autoscaling", kind="Scale", name=metadata["name"], errors=[error])
    mapping(resource).set_replicas(obj, replicas)
    metadata["resourceVersion"] = (scale.get("metadata") or {}).get("resourceVersion", "")
