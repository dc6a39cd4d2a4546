"""Server-side apply: merges a configuration into an object and updates the managers of its fields.

Called by `managed_kinds`. The steps of `apply` are modules: `type_checking`, `extracting`, `merging`, `pruning`.

Rules: the applying manager owns the fields of its configuration. Fields of other managers that it changes are
conflicts, or, with `force`, are taken from them. Fields that it applied before, does not apply now, and no other
manager owns are removed.

Source: structured-merge-diff's Updater.Apply; apimachinery's field managers.
"""

from dataclasses import dataclass, replace

from podscaler.api.managed_fields import extracting, field_sets, merging, type_checking
from podscaler.api.managed_fields.conflicts import ConflictsError
from podscaler.api.managed_fields.field_sets import FieldSet
from podscaler.api.managed_fields.managers import ManagedFields, Manager, Managers
from podscaler.api.managed_fields.pruning import Pruner
from podscaler.api.managed_fields.updating import (
    UNOWNED_FIELDS,
    Changes,
    FieldWriter,
    Object,
    Versions,
    without_changed_fields,
)


class ConfigurationError(ValueError):
    """A configuration does not have the types of its kind; str() is kube-apiserver's message with the paths."""


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of applying a configuration.

    Attributes:
        obj: the merged object; None if it equals the live one.
        managers: the managers of the merged object.
    """

    obj: Object | None
    managers: Managers


def apply(
    managers: Managers, live_object: Object, config: Object, writer: FieldWriter, versions: Versions, *, force: bool
) -> Applied:
    """The outcome of applying `config`.

    Args:
        managers: the managers of the live object.
        live_object: the stored object in the writer's version; the empty object where none exists.
        config: the configuration that the client sent, in the writer's version.
        writer: the applying manager.
        versions: the versions of the kind.
        force: whether changed fields of other managers are taken from them.

    Raises:
        ConfigurationError: the configuration does not match its type.
        ConflictsError: it changes fields of other managers, and `force` is not set.
        ConversionError: the merged object cannot be converted to the version of another manager.
        KeyError: the writer's version is not served.
        AtomError: an item of an associative list of the live object has no path element.
    """
    field_type = versions.type_of(writer.version)
    type_errors = type_checking.errors(config, field_type)
    if type_errors:
        raise ConfigurationError(type_checking.summary(type_errors))
    last_applied = managers.get(writer.manager)
    fields = field_sets.without_trees(extracting.field_set(config, field_type), versions.ignored)
    applied_entry = ManagedFields(fields, writer.version, last_applied.time if last_applied else "")
    # From here on the applying manager counts as the owner of its new fields.
    claimed_managers = {**managers, writer.manager: applied_entry}
    merged_object = Pruner(claimed_managers, writer.version, versions).prune(
        merging.merge(live_object, config, field_type), last_applied
    )
    changes = Changes(live_object, merged_object, writer.version, versions)
    if not force:
        _check_no_conflicts(claimed_managers, changes, writer)
    managers_after = without_changed_fields(claimed_managers, changes, exempt=writer.manager)
    is_changed = live_object != merged_object
    _complete_entry(managers_after, writer, last_applied, is_changed=is_changed)
    return Applied(merged_object if is_changed else None, managers_after)


def _complete_entry(
    managers: Managers, writer: FieldWriter, last_applied: ManagedFields | None, *, is_changed: bool
) -> None:
    """Complete the entry of the applying manager, in place: without UNOWNED_FIELDS; removed without other fields.

    Its time becomes that of the write if the object changed, else it stays.
    """
    applied_entry = managers.pop(writer.manager, None)
    fields = field_sets.difference(applied_entry.fields, UNOWNED_FIELDS) if applied_entry else {}
    if not fields:
        return
    last_time = last_applied.time if last_applied else ""
    time = writer.now if is_changed else last_time
    new_entry = ManagedFields(fields, writer.version, time)
    if last_applied is not None and new_entry == replace(last_applied, entry=None):
        new_entry = last_applied  # with the stored entry, which is written as it was read
    managers[writer.manager] = new_entry


def _check_no_conflicts(managers: Managers, changes: Changes, writer: FieldWriter) -> None:
    """Raise ConflictsError if the writer changes fields that others own. Raises ConversionError, as `apply`."""
    conflicting_fields: dict[Manager, FieldSet] = {}
    for manager, managed in managers.items():
        field_changes = changes.of(managed.version)
        if manager != writer.manager and field_changes is not None:
            fields = field_sets.intersection(managed.fields, field_changes.written)
            if fields:
                conflicting_fields[manager] = fields
    if conflicting_fields:
        raise ConflictsError(conflicting_fields)
