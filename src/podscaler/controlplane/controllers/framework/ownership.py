"""Owners and what they own: references, and the controller among them; every controller calls it.

Source: metav1.OwnerReference; "at most one owner is the controller".
"""

from podscaler.api.resource.resources import Object


def references(obj: Object) -> list[Object]:
    """Its ownerReferences, in order; may be empty."""
    owners: list[Object] = obj["metadata"].get("ownerReferences") or []
    return owners


def controller_of(obj: Object) -> Object | None:
    """The ownerReference of the controller that manages it, None for an orphan."""
    return next((owner for owner in references(obj) if owner.get("controller")), None)


def is_controlled_by(obj: Object, uid: str) -> bool:
    """Whether the object with this uid is its controller."""
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
    """Take the reference to `uid` off the object, in place."""
    left = [owner for owner in references(obj) if owner["uid"] != uid]
    if left:
        obj["metadata"]["ownerReferences"] = left
    else:
        obj["metadata"].pop("ownerReferences", None)
