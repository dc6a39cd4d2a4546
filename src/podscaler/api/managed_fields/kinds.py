"""What tracking an object's fields needs to know about its kind, and the three ways in which its managers change.

Called by the store's side of writes: `created`, `updated` and `applied` take objects with the entries that they had,
and return the entries that they get. They settle what upstream's chain of field managers does around `updating` and
`applying`: what a client may say about managers itself, objects that nobody tracked so far, kubectl's own past.

Source: apimachinery's managedfields package.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.api.managed_fields import applying, conflicts, last_applied, managers, updating
from podscaler.api.managed_fields.conflicts import ConflictsError
from podscaler.api.managed_fields.managers import Entries, Managers
from podscaler.api.managed_fields.types import FieldType
from podscaler.api.managed_fields.updating import FieldWriter, Object, Versions

BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True, slots=True)
class ManagedKind:
    """A kind whose fields have managers.

    Attributes:
        versions: its versions.
        empty: by apiVersion, the object that has nothing yet, in the form in which it is stored.
        subresource: through which it is written, empty for the object itself.
    """

    versions: Versions
    empty: Callable[[str], Object]
    subresource: str = ""

    def type_of(self, version: str) -> FieldType:
        """The type in a version that is served. Raises KeyError for another."""
        found = self.versions.types(version)
        if found is None:
            raise KeyError(version)
        return found

    def writer(self, name: str, version: str, now: str) -> FieldWriter:
        """Who creates, updates or patches objects through this path."""
        return FieldWriter(managers.updater(name, version, self.subresource), version, now)


def created(kind: ManagedKind, obj: Object, sent: Sequence[Any] | None, writer: FieldWriter) -> Entries:
    """The entries of a new object.

    Args:
        kind: its kind.
        obj: in the writer's version, in the form in which it is stored, before the server gives it anything.
        sent: the entries that the client sent, None without.
        writer: who creates it.
    """
    before = _foreign(sent) or {}
    after = updating.updated(before, kind.empty(writer.version), obj, writer, kind.versions)
    return managers.written(after.items())


def base(live: Sequence[Any], sent: Sequence[Any] | None) -> Sequence[Any] | None:
    """The entries from which an update goes out: those stored, unless the client sent others that can be understood.

    None where there are none: then nothing is tracked.
    """
    if sent is None or sent == live:
        return live or None
    if managers.is_reset(sent):
        return None
    foreign = _foreign(sent)
    return managers.written(foreign.items()) if foreign else (live or None)


def updated(kind: ManagedKind, old: Object, new: Object, before: Sequence[Any], writer: FieldWriter) -> Entries:
    """The entries after `writer` made `new` of `old`, both in its version, in the form in which they are stored."""
    after = updating.updated(managers.parse(before), old, new, writer, kind.versions)
    return managers.written(after.items())


@dataclass(frozen=True, slots=True)
class Application:
    """A configuration that somebody applies.

    Attributes:
        config: as the client wrote it.
        manager: who applies it.
        version: the apiVersion of its path, which is its own.
        now: as RFC 3339, whole seconds.
        force: take fields from others.
    """

    config: Object
    manager: str
    version: str
    now: str
    force: bool = False


def applied(kind: ManagedKind, live: Object | None, before: Sequence[Any], application: Application) -> Object:
    """The object as it becomes, with its entries, not yet defaulted; members may be null.

    Args:
        kind: its kind.
        live: in the application's version, in the form in which it is stored; None where there is none.
        before: its entries.
        application: what is applied.

    Raises:
        StatusError: 409 for conflicts.
        ConfigurationError: for a configuration that does not fit the kind.
    """
    empty = kind.empty(application.version)
    found = managers.parse(before) or _before_first_apply(kind, live, application)
    result = _applied(kind, empty if live is None else live, found, application)
    obj = dict((empty if live is None else live) if result.obj is None else result.obj)
    if application.manager == last_applied.MANAGER:
        last_applied.follow(obj, application.config)
    obj["metadata"] = {**(obj.get("metadata") or {}), "managedFields": managers.written(result.managers.items())}
    return obj


def _applied(kind: ManagedKind, live: Object, found: Managers, application: Application) -> applying.Applied:
    writer = FieldWriter(managers.applier(application.manager, kind.subresource), application.version, application.now)
    config = application.config
    try:
        return applying.applied(found, live, config, writer, kind.versions, force=application.force)
    except ConflictsError as error:
        remaining = _remaining(error, kind, live, application)
    if remaining is not None:
        raise conflicts.refusal(remaining) from None
    return applying.applied(found, live, config, writer, kind.versions, force=True)


def _remaining(
    error: ConflictsError, kind: ManagedKind, live: Object, application: Application
) -> ConflictsError | None:
    """The conflicts that count: kubectl has none about what it applied in its older way."""
    if application.manager != last_applied.MANAGER:
        return error
    version = application.version
    return error.without(last_applied.allowed(live, version, kind.type_of(version)))


def _before_first_apply(kind: ManagedKind, live: Object | None, application: Application) -> Managers:
    """One manager for all that an object has that nobody tracked until now."""
    if live is None:
        return {}
    writer = kind.writer(BEFORE_FIRST_APPLY, application.version, application.now)
    return updating.updated({}, kind.empty(application.version), live, writer, kind.versions)


def _foreign(sent: Sequence[Any] | None) -> Managers | None:
    """The managers that a client's entries tell of, None where they tell of none."""
    if not sent:
        return None
    try:
        return managers.parse_foreign(sent)
    except managers.EntriesError:
        return None
