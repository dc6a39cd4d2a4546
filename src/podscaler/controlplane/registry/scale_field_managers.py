"""Applies a write of the scale subresource to the scaled object: its replicas, and the owners of that field.

`objects.Objects.update_scale` calls `apply_scale_change` inside the store's write. A Scale has managedFields of its
own, which are computed from, and written back to, those of the object (a Deployment, for example).

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
_NO_TIME = ""
"""Entries of the scale subresource have no time."""


def _find_type(version: str) -> FieldType | None:
    return message_types.of_message(SCALE_MESSAGE) if version == SCALE_VERSION else None


def _unchanged(obj: Object, _version: str, _wanted: str) -> Object:
    return obj


def _empty(_version: str) -> Object:
    return canonical.canonical({}, SCALE_MESSAGE)


SCALE_KIND = ManagedKind(Versions(_find_type, _unchanged, {}), _empty, "scale")
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

    Raises StatusError 409 for another object's uid, 422 for negative replicas; every error of `change`.
    """
    parent = managing.take_entries(obj) or []
    fields = field_managers.scale_fields(resource)
    scale = scale_objects.scale_of(resource, obj)
    live = fields.of_scale(parent)
    managing.set_entries(scale, live)
    wanted = change(scale)
    _check_uid(resource, wanted, obj)
    sent = managing.take_entries(wanted)
    managing.take_entries(scale)
    after = sent or [] if author is None else _updated(scale, wanted, live, author)
    scale_objects.apply_scale(resource, obj, wanted)
    obj["metadata"]["managedFields"] = fields.of_parent(parent, after)
    return obj


def scale_with_managers(field_managers: FieldManagers, resource: Resource, obj: Object) -> Object:
    """The Scale of `obj` (changed in place) with the managedFields of the subresource.

    Raises StatusError 500 for a custom resource without replicas.
    """
    parent = managing.take_entries(obj) or []
    scale = scale_objects.served_scale(resource, obj)
    managing.set_entries(scale, field_managers.scale_fields(resource).of_scale(parent))
    return scale


def _check_uid(resource: Resource, wanted: Object, obj: Object) -> None:
    """Raise StatusError 409 for a Scale with the uid of another object."""
    uid, found = (wanted.get("metadata") or {}).get("uid", ""), obj["metadata"]["uid"]
    if uid and uid != found:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        named = replace(resource, plural=f"{resource.plural}/scale")
        raise api_errors.conflict(named, obj["metadata"]["name"], why)


def _updated(scale: Object, wanted: Object, live: Entries, author: Author) -> Entries:
    if not live:
        return []
    old, new = (canonical.canonical(each, SCALE_MESSAGE) for each in (scale, wanted))
    return managed_kinds.updated(SCALE_KIND, old, new, live, SCALE_KIND.writer(author.manager, SCALE_VERSION, _NO_TIME))
