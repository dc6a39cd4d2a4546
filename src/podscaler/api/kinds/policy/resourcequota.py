"""The record of ResourceQuota (core/v1): kept for clients; nothing is counted or limited by it.

Source: the API reference of core/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api.kinds.policy import resourcequota_validation
from podscaler.api.machinery import printing
from podscaler.api.resource import status_subresource
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_LIMIT_PREFIX = "limits."


def fill(quota: Object) -> None:
    """What a quota always shows, in place."""
    quota.setdefault("spec", {})
    quota.setdefault("status", {})


def _row(quota: Object, now_ns: int) -> list[Any]:
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    shown = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in shown.items() if name.startswith(_LIMIT_PREFIX)]
    requests = [text for name, text in shown.items() if not name.startswith(_LIMIT_PREFIX)]
    age = printing.created_age(quota, now_ns)
    return [quota["metadata"].get("name", ""), ", ".join(requests), ", ".join(limits), age]


RESOURCE = Resource(
    group="",
    plural="resourcequotas",
    singular="resourcequota",
    kind="ResourceQuota",
    versions=(Version("v1", "core/v1.ResourceQuota", default=fill),),
    storage_version="v1",
    short_names=("quota",),
    has_status=True,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=resourcequota_validation.faults,
        validate_status=resourcequota_validation.status_faults,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the quota, unique within its namespace."),
            Column("Request", description="What is used, of what may be."),
            Column("Limit", description="The same for limits."),
            Column("Age", description="Time since the quota was created."),
        ),
        row=_row,
    ),
)
