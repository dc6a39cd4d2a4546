"""The usual division of labour between an object and its `status` subresource.

Called by the records of kinds with a status: a write of the object leaves the status alone, a write of the status
leaves the rest alone, a new object starts without one.

Source: docs/spec/api.md 3 (Create, update, status update).
"""

from collections.abc import Callable

from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Object


def start_with(status: Object) -> Callable[[Object], None]:
    """`prepare_create`: whatever the client sent, the object starts with a copy of `status`."""

    def prepare(new: Object) -> None:
        new["status"] = semantics.copied(status)

    return prepare


def keep_status(new: Object, old: Object) -> None:
    """`prepare_update`: the status is that of the stored object."""
    _carry("status", new, old)


def keep_spec(new: Object, old: Object) -> None:
    """`prepare_status_update`: the spec is that of the stored object."""
    _carry("spec", new, old)


def _carry(part: str, new: Object, old: Object) -> None:
    if part in old:
        new[part] = old[part]
    else:
        new.pop(part, None)
