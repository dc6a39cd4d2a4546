"""Adopts and releases the objects of a controller by its selector (upstream's ControllerRefManager).

The workload controllers call `claim` at the start of a sync. An orphan that the selector matches is adopted, an owned
object that it no longer matches is released; an object of another controller is left alone.

Source: documentation of ReplicaSet ("Non-Template Pod acquisitions"), metav1.OwnerReference. Differs: the owner is not
read again before an adoption (upstream's canAdopt), as the registry has no outdated cache.
"""

from collections.abc import Iterable

from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.framework import ownership, pods, selection, write_errors
from podscaler.controlplane.registry.registry import Registry


class _NotAnOrphan(Exception):
    """The object to be adopted has a controller by now, is being deleted, or was relabelled."""


async def claim(
    registry: Registry, resource: str, owner: Object, *, selector: Selector, orphan_names: Iterable[str]
) -> list[Object]:
    """Adopt and release objects of kind `resource`; returns those that `owner` controls then, and that match.

    Pods are shared with other readers and not to be changed; objects of other kinds are the caller's own copies.

    Args:
        registry: where the objects are.
        resource: the `Resource.key` of the owned kind (`pods`).
        owner: with apiVersion and kind; one that is being deleted neither adopts nor releases.
        selector: the owner's selector.
        orphan_names: of objects in the owner's namespace that may have to be adopted.

    Raises:
        StatusError: an object cannot be written.
    """
    uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
    matching: list[Object] = []
    for obj in ownership.controlled_by(registry, resource, owner):
        if selector.matches(selection.labels_of(obj)):
            matching.append(obj)
        elif not pods.is_terminating(owner):
            await _release_stored(registry, resource, obj, uid)
    if pods.is_terminating(owner):
        return matching
    adopted = [await _adopt_orphan(registry, resource, (namespace, name), owner, selector) for name in orphan_names]
    return matching + [obj for obj in adopted if obj is not None]


async def _release_stored(registry: Registry, resource: str, obj: Object, uid: str) -> None:
    """Remove the ownerReference to `uid` from the stored object, which may be gone."""
    await write_errors.ignoring_gone(
        registry.mutate(resource, *selection.key_of(obj), lambda newest: ownership.release(newest, uid))
    )


async def _adopt_orphan(
    registry: Registry, resource: str, key: selection.Key, owner: Object, selector: Selector
) -> Object | None:
    """Adopt an orphan; returns it, None if it is gone, taken or relabelled meanwhile. Raises StatusError."""

    def adopt(newest: Object) -> None:
        is_orphan = ownership.controller_of(newest) is None and not pods.is_terminating(newest)
        if not is_orphan or not selector.matches(selection.labels_of(newest)):
            raise _NotAnOrphan
        newest["metadata"].setdefault("ownerReferences", []).append(ownership.controller_reference(owner))

    try:
        return await registry.mutate(resource, *key, adopt)
    except _NotAnOrphan:
        return None
    except StatusError as error:
        if error.code != 404:  # not by `ignoring_gone`, which does not return the object
            raise
        return None
