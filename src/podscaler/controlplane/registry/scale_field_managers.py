"""Applies a write of the scale subresource to the scaled object: its replicas, and the owners of that field.

`objects.Objects.update_scale` calls `apply_scale_change` inside the store's write, and `scale_with_managers` for
webhooks; `apiserver.handlers.scales` reads `SCALE_KIND`. A Scale has managedFields of its own, which are computed from,
and written back to, those of the object (a Deployment, for example).

Source: the scale subresources of kube-apiserver's registries.
"""

from dataclasses import replace

from podscaler.api.managed_fields import managed_kinds, message_types
from podscaler.api.managed_fields.field_types import FieldType
from podscaler.api.managed_fields.managed_kinds import ManagedKind
from podscaler.api.managed_fields.managers import Entries
from podscaler.api.managed_fields.scale_fields import SCALE_VERSION
from podscaler.api.managed_fields.updating import Versions
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource
from podscaler.api.schema import canonical
from podscaler.controlplane.registry import field_managers as managing
from podscaler.controlplane.registry import scale_objects
from podscaler.controlplane.registry.field_managers import FieldManagers
from podscaler.controlplane.registry.object_writer import Change
from podscaler.controlplane.storage.options import Author

SCALE_MESSAGE = "autoscaling/v1.Scale"
_ENTRY_TIME = ""
"""As upstream, entries of the scale subresource have no time."""


def _find_type(version: str) -> FieldType | None:
    """The types of the fields of a Scale; None for another apiVersion than that of Scales."""
    return message_types.of_message(SCALE_MESSAGE) if version == SCALE_VERSION else None


def _convert_nothing(obj: Object, _version: str, _target_version: str) -> Object:
    """The Scale itself, which has one version."""
    return obj


def _empty_scale(_version: str) -> Object:
    """The Scale without fields."""
    return canonical.canonical({}, SCALE_MESSAGE)


SCALE_KIND = ManagedKind(Versions(_find_type, _convert_nothing, {}), _empty_scale, "scale")
"""How the fields of a Scale are tracked."""


def apply_scale_change(
    field_managers: FieldManagers, resource: Resource, change: Change, author: Author | None, obj: Object
) -> Object:
    """`obj` (changed in place) with the replicas and managedFields after `change` was applied to its Scale.

    Args:
        field_managers: the field managers of the served kinds.
        resource: the kind of the object.
        change: from the current Scale to the new one.
        author: the writer; None if the new Scale has managedFields of its own.
        obj: the stored object.

    Raises StatusError 409 for another object's uid, 422 for negative replicas, 400 for a custom resource without them;
    every error of `change`.
    """
    parent_entries = managing.take_entries(obj) or []
    replica_fields = field_managers.scale_fields(resource)
    scale = scale_objects.scale_of(resource, obj)
    live_entries = replica_fields.of_scale(parent_entries)
    managing.set_entries(scale, live_entries)
    new_scale = change(scale)
    _check_uid(resource, new_scale, obj)
    sent_entries = managing.take_entries(new_scale)
    managing.take_entries(scale)
    if author is None:
        new_entries = sent_entries or []
    else:
        new_entries = _entries_after_update(scale, new_scale, live_entries, author)
    scale_objects.apply_scale(resource, obj, new_scale)
    obj["metadata"]["managedFields"] = replica_fields.of_parent(parent_entries, new_entries)
    return obj


def scale_with_managers(field_managers: FieldManagers, resource: Resource, obj: Object) -> Object:
    """The Scale of `obj` (changed in place) with the managedFields of the subresource.

    Raises StatusError 500 for a custom resource without replicas.
    """
    parent_entries = managing.take_entries(obj) or []
    scale = scale_objects.served_scale(resource, obj)
    managing.set_entries(scale, field_managers.scale_fields(resource).of_scale(parent_entries))
    return scale


def _check_uid(resource: Resource, new_scale: Object, obj: Object) -> None:
    """Raise StatusError 409 for a Scale with the uid of another object."""
    sent_uid, stored_uid = (new_scale.get("metadata") or {}).get("uid", ""), obj["metadata"]["uid"]
    if sent_uid and sent_uid != stored_uid:
        reason = f"Precondition failed: UID in precondition: {sent_uid}, UID in object meta: {stored_uid}"
        subresource = replace(resource, plural=f"{resource.plural}/scale")  # kube-apiserver's name in the message
        raise api_errors.conflict(subresource, obj["metadata"]["name"], reason)


def _entries_after_update(scale: Object, new_scale: Object, live_entries: Entries, author: Author) -> Entries:
    """The entries of a Scale after `author` wrote it; none if the object has none."""
    if not live_entries:
        return []
    old, new = (canonical.canonical(obj, SCALE_MESSAGE) for obj in (scale, new_scale))
    writer = SCALE_KIND.writer(author.manager, SCALE_VERSION, _ENTRY_TIME)
    return managed_kinds.entries_after_update(SCALE_KIND, old, new, live_entries, writer)
