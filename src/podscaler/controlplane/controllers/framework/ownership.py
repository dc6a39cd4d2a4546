"""Reads, makes and removes ownerReferences of objects; the controllers of workloads, endpoints and garbage call it.

Objects of any kind are JSON objects with `metadata`. At most one of the owners is the controller.

Source: metav1.OwnerReference.
"""

from podscaler.api.resource.resources import Object
from podscaler.controlplane.registry.registry import Registry


def references(obj: Object) -> list[Object]:
    """The ownerReferences of an object, in order; may be empty."""
    owners: list[Object] = obj["metadata"].get("ownerReferences") or []
    return owners


def controller_of(obj: Object) -> Object | None:
    """The ownerReference of the controller that manages an object, None for an orphan."""
    return next((owner for owner in references(obj) if owner.get("controller")), None)


def controlled_by(registry: Registry, resource: str, owner: Object) -> list[Object]:
    """The objects of kind `resource` (a `Resource.key`) whose controller is `owner`; pods are not to be changed.

    The registry shares the pods that it returns with other readers; objects of other kinds are the caller's own copies.
    """
    uid = owner["metadata"]["uid"]
    return [obj for obj in registry.owned_by(resource, uid) if is_controlled_by(obj, uid)]


def is_controlled_by(obj: Object, uid: str) -> bool:
    """Whether the object with this uid is the controller of `obj`."""
    owner = controller_of(obj)
    return owner is not None and owner["uid"] == uid


def controller_reference(owner: Object) -> Object:
    """The ownerReference that makes `owner` (with its apiVersion and kind) the controller of an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def release(obj: Object, uid: str) -> None:
    """Remove the ownerReference to `uid` from an object, in place."""
    remaining = [owner for owner in references(obj) if owner["uid"] != uid]
    if remaining:
        obj["metadata"]["ownerReferences"] = remaining
    else:
        obj["metadata"].pop("ownerReferences", None)
