"""Defines the conflicts of server-side apply, and makes the API error 409 that reports them.

    Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas

`applying` raises them; `managed_kinds` drops those about fields that client-side kubectl wrote, and raises the API
error.

Source: apimachinery's NewConflictError; golden update-hpa.jsonl, scale.jsonl.
"""

from collections.abc import Mapping

from podscaler.api.managed_fields import field_sets, managers, path_elements
from podscaler.api.managed_fields.field_sets import FieldSet
from podscaler.api.managed_fields.managers import Manager
from podscaler.api.text import quoting
from podscaler.base.errors import Cause, StatusError


class ConflictsError(Exception):
    """An applied configuration changes fields of other managers.

    Args:
        fields_by_manager: those fields of each manager that the configuration changes; not empty.
    """

    def __init__(self, fields_by_manager: Mapping[Manager, FieldSet]) -> None:
        super().__init__("conflicts")
        self.fields_by_manager = dict(fields_by_manager)

    def without(self, allowed_fields: FieldSet) -> "ConflictsError | None":
        """The conflicts without the fields `allowed_fields`; None if no conflict remains."""
        remaining: dict[Manager, FieldSet] = {}
        for manager, fields in self.fields_by_manager.items():
            if remaining_fields := field_sets.difference(fields, allowed_fields):
                remaining[manager] = remaining_fields
        return ConflictsError(remaining) if remaining else None


def status_error(conflicts: ConflictsError) -> StatusError:
    """The API error 409, with a cause for each field."""
    conflicting_fields = [
        (_manager_text(manager), path_elements.path_text(path))
        for manager in sorted(conflicts.fields_by_manager, key=lambda manager: manager.identifier)
        for path in field_sets.paths(conflicts.fields_by_manager[manager])
    ]
    causes = [Cause("FieldManagerConflict", f"conflict with {manager}", path) for manager, path in conflicting_fields]
    return StatusError(_conflicts_message(conflicting_fields), code=409, reason="Conflict", details={}, causes=causes)


def _conflicts_message(conflicting_fields: list[tuple[str, str]]) -> str:
    """The message of all conflicts: in one line, or by manager."""
    if len(conflicting_fields) == 1:
        manager, path = conflicting_fields[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
    by_manager: dict[str, list[str]] = {}
    for manager, path in conflicting_fields:
        by_manager.setdefault(manager, []).append(f"- {path}")
    lines = [line for manager, paths in by_manager.items() for line in (f"conflicts with {manager}:", *paths)]
    return f"Apply failed with {len(conflicting_fields)} conflicts: " + "\n".join(lines)


def _manager_text(manager: Manager) -> str:
    """A manager in messages, such as `"kubectl-edit" with subresource "scale" using apps/v1`."""
    manager_text = quoting.quoted(manager.name)
    if manager.subresource:
        manager_text += f" with subresource {quoting.quoted(manager.subresource)}"
    return f"{manager_text} using {manager.version}" if manager.operation == managers.UPDATE else manager_text
