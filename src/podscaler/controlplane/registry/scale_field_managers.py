"""A change of a Scale as a change of its object: the replicas, and who manages them.

Called by `objects` inside the store's write.

Source: the scale subresources of upstream's registries.
"""

from dataclasses import replace

from podscaler.api.managed_fields import kinds, message_types
from podscaler.api.managed_fields.kinds import ManagedKind
from podscaler.api.managed_fields.managers import Entries
from podscaler.api.managed_fields.scale_fields import SCALE_VERSION
from podscaler.api.managed_fields.types import FieldType
from podscaler.api.managed_fields.updating import Versions
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Resource
from podscaler.api.schema import canonical
from podscaler.controlplane.registry import field_managers as managing
from podscaler.controlplane.registry import scaling
from podscaler.controlplane.registry.field_managers import FieldManagers
from podscaler.controlplane.registry.writing import Change
from podscaler.controlplane.storage.options import Author

MESSAGE = "autoscaling/v1.Scale"
_NO_TIME = ""
"""Who owns replicas through a Scale does so without a time."""


def _type(version: str) -> FieldType | None:
    return message_types.of_message(MESSAGE) if version == SCALE_VERSION else None


def _same(obj: Object, _version: str, _wanted: str) -> Object:
    return obj


def _empty(_version: str) -> Object:
    return canonical.canonical({}, MESSAGE)


KIND = ManagedKind(Versions(_type, _same, {}), _empty, "scale")
"""Scale, as its fields are tracked."""


def rescaled(
    field_managers: FieldManagers, resource: Resource, change: Change, author: Author | None, obj: Object
) -> Object:
    """`obj` (changed in place) with what `change` does to its Scale, and with its managers afterwards.

    Args:
        field_managers: of the served kinds.
        resource: the kind of the object.
        change: from the Scale to the wanted one.
        author: who writes; None where the wanted Scale says itself who manages it.
        obj: as it is stored.

    Raises:
        StatusError: what `change` raises, 409 for another object's uid, 422 for a negative number.
    """
    parent = managing.take_entries(obj) or []
    fields = field_managers.scale_fields(resource)
    scale = scaling.scale_of(resource, obj)
    live = fields.of_scale(parent)
    managing.set_entries(scale, live)
    wanted = change(scale)
    _check_uid(resource, wanted, obj)
    sent = managing.take_entries(wanted)
    managing.take_entries(scale)
    after = sent or [] if author is None else _updated(scale, wanted, live, author)
    scaling.apply_scale(resource, obj, wanted)
    obj["metadata"]["managedFields"] = fields.of_parent(parent, after)
    return obj


def _check_uid(resource: Resource, wanted: Object, obj: Object) -> None:
    """Refuse (409) a Scale that says that it is that of another object."""
    uid, found = (wanted.get("metadata") or {}).get("uid", ""), obj["metadata"]["uid"]
    if uid and uid != found:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
        named = replace(resource, plural=f"{resource.plural}/scale")
        raise api_errors.conflict(named, obj["metadata"]["name"], why)


def _updated(scale: Object, wanted: Object, live: Entries, author: Author) -> Entries:
    if not live:
        return []
    old, new = (canonical.canonical(each, MESSAGE) for each in (scale, wanted))
    return kinds.updated(KIND, old, new, live, KIND.writer(author.manager, SCALE_VERSION, _NO_TIME))
