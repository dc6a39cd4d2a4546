"""Computes metadata.managedFields after a create, an update or an apply: the entry point of the package.

`podscaler.controlplane.registry.field_managers` calls `entries_after_create` or `entries_after_update` for each write,
the API server's handler of server-side apply calls `apply`. These functions handle entries that the client sent, and
objects without entries. What a write does to the managers of fields: `updating`; to apply: `applying`; which conflicts
there are: `conflicts`; the migration of `kubectl apply` from client-side to server-side apply: `last_applied`.

Source: apimachinery's managedfields package.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from podscaler.api.managed_fields import applying, conflicts, last_applied, managers, updating
from podscaler.api.managed_fields.conflicts import ConflictsError
from podscaler.api.managed_fields.managers import Entries, Managers
from podscaler.api.managed_fields.updating import FieldWriter, Object, Versions

_BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager that gets all fields of an object without entries, when a configuration is applied to it."""


@dataclass(frozen=True, slots=True)
class ManagedKind:
    """A kind, as a writer of one of its resources sees it.

    Attributes:
        versions: the versions of the kind.
        make_empty: from an apiVersion to the stored form of an empty object.
        subresource: the written subresource; empty for the object itself.
    """

    versions: Versions
    make_empty: Callable[[str], Object]
    subresource: str = ""

    def writer(self, name: str, version: str, now: str) -> FieldWriter:
        """The manager `name` of a create, update or patch in `version`, at `now` (RFC 3339, whole seconds)."""
        return FieldWriter(managers.updater(name, version, self.subresource), version, now)


def entries_after_create(
    kind: ManagedKind, obj: Object, sent_entries: Sequence[Any] | None, writer: FieldWriter
) -> Entries:
    """The entries of a new object.

    Args:
        kind: the kind of the object.
        obj: the stored form in the writer's version, before the server sets uid, creationTimestamp, ...
        sent_entries: the entries that the client sent; None without any.
        writer: the creating manager.

    Raises:
        ConversionError: the object cannot be converted to the version of a manager that the client sent.
    """
    sent_managers = _parse_sent(sent_entries) or {}
    empty_object = kind.make_empty(writer.version)
    managers_after = updating.update_managers(sent_managers, empty_object, obj, writer, kind.versions)
    return managers.to_entries(managers_after.items())


def entries_before_update(live_entries: Sequence[Any], sent_entries: Sequence[Any] | None) -> Sequence[Any] | None:
    """The entries before an update: the stored ones (`live_entries`), unless the client sent other valid ones.

    None without entries, and where the client reset them: then fields are not tracked.
    """
    if sent_entries is None or sent_entries == live_entries:
        return live_entries or None
    if managers.is_reset(sent_entries):
        return None
    sent_managers = _parse_sent(sent_entries)
    return managers.to_entries(sent_managers.items()) if sent_managers else (live_entries or None)


def entries_after_update(
    kind: ManagedKind, old: Object, new: Object, entries_before: Sequence[Any], writer: FieldWriter
) -> Entries:
    """The entries after `writer` changed `old` to `new`, both stored forms in its version.

    Raises ConversionError if they cannot be converted to the version of another manager.
    """
    managers_after = updating.update_managers(managers.parse(entries_before), old, new, writer, kind.versions)
    return managers.to_entries(managers_after.items())


@dataclass(frozen=True, slots=True)
class Application:
    """A request to apply a configuration.

    Attributes:
        config: the configuration that the client sent.
        manager: the name of the applying manager.
        version: the apiVersion of the request's path and of the configuration.
        now: the time, RFC 3339 in whole seconds.
        force: whether changed fields of other managers are taken from them.
    """

    config: Object
    manager: str
    version: str
    now: str
    force: bool = False


def apply(
    kind: ManagedKind, live_object: Object | None, live_entries: Sequence[Any], application: Application
) -> Object:
    """The merged object with its entries, before defaulting; members may be null.

    Args:
        kind: the kind of the object.
        live_object: the stored object in the application's version; None if none exists.
        live_entries: the entries of the live object.
        application: the request.

    Raises:
        StatusError: 409 for conflicts.
        ConfigurationError: the configuration does not match the kind.
        ConversionError: an object cannot be converted to the version of another manager.
        KeyError: the application's version is not served.
        AtomError: an item of an associative list of the live object has no path element (`field_types`).
    """
    earlier_managers = managers.parse(live_entries) or _managers_before_first_apply(kind, live_object, application)
    base_object = kind.make_empty(application.version) if live_object is None else live_object
    outcome = _apply_past_own_conflicts(kind, base_object, earlier_managers, application)
    merged_object = base_object if outcome.obj is None else outcome.obj  # None: the configuration changes nothing
    obj = dict(merged_object)
    if application.manager == last_applied.MANAGER:
        last_applied.update_annotation(obj, application.config)
    obj["metadata"] = {**(obj.get("metadata") or {}), "managedFields": managers.to_entries(outcome.managers.items())}
    return obj


def _apply_past_own_conflicts(
    kind: ManagedKind, live_object: Object, earlier_managers: Managers, application: Application
) -> applying.Applied:
    """The applied configuration; conflicts of kubectl with itself are forced. Raises as `apply` for all others."""
    writer = FieldWriter(managers.applier(application.manager, kind.subresource), application.version, application.now)
    config = application.config
    try:
        return applying.apply(earlier_managers, live_object, config, writer, kind.versions, force=application.force)
    except ConflictsError as error:
        remaining = _remaining_conflicts(error, kind, live_object, application)
    if remaining is not None:
        raise conflicts.status_error(remaining) from None
    return applying.apply(earlier_managers, live_object, config, writer, kind.versions, force=True)


def _remaining_conflicts(
    error: ConflictsError, kind: ManagedKind, live_object: Object, application: Application
) -> ConflictsError | None:
    """The conflicts without those of kubectl about fields that it applied on the client side; None if none remain."""
    if application.manager != last_applied.MANAGER:
        return error
    version = application.version
    return error.without(last_applied.unchanged_fields(live_object, version, kind.versions.type_of(version)))


def _managers_before_first_apply(kind: ManagedKind, live_object: Object | None, application: Application) -> Managers:
    """One manager for all fields of an object without entries; none for a new object."""
    if live_object is None:
        return {}
    writer = kind.writer(_BEFORE_FIRST_APPLY, application.version, application.now)
    empty_object = kind.make_empty(application.version)
    return updating.update_managers({}, empty_object, live_object, writer, kind.versions)


def _parse_sent(sent_entries: Sequence[Any] | None) -> Managers | None:
    """The managers of a client's entries; None without entries, and for invalid ones."""
    if not sent_entries:
        return None
    try:
        return managers.parse_sent(sent_entries)
    except managers.EntriesError:
        return None
