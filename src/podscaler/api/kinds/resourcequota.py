"""The records of ResourceQuota and LimitRange (core/v1): kept for clients; nothing is counted or limited by them.

Source: the API reference of core/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api import printing
from podscaler.api.field import FieldError, invalid, not_supported
from podscaler.api.kinds import status_subresource
from podscaler.api.quantity import Quantity
from podscaler.api.resources import Column, Object, Printer, Resource, Strategy, Version

_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
_LIMIT_PREFIX = "limits."


def fill(quota: Object) -> None:
    """What a quota always shows, in place."""
    quota.setdefault("spec", {})
    quota.setdefault("status", {})


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a ResourceQuota to be stored; its scopes never change."""
    spec = new.get("spec") or {}
    found = _amount_faults(spec.get("hard") or {}, "spec.hard")
    scopes = spec.get("scopes") or []
    found += [not_supported("spec.scopes", scope, _SCOPES) for scope in scopes if scope not in _SCOPES]
    if old is not None and sorted(scopes) != sorted((old.get("spec") or {}).get("scopes") or []):
        found.append(invalid("spec.scopes", scopes, "field is immutable"))
    return found


def _amount_faults(amounts: Object, path: str) -> list[FieldError]:
    negative = [name for name in sorted(amounts) if Quantity.parse(str(amounts[name])) < Quantity.parse("0")]
    text = "must be greater than or equal to 0"
    return [invalid(f"{path}[{name}]", str(amounts[name]), text) for name in negative]


def _row(quota: Object, now_ns: int) -> list[Any]:
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    shown = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in shown.items() if name.startswith(_LIMIT_PREFIX)]
    requests = [text for name, text in shown.items() if not name.startswith(_LIMIT_PREFIX)]
    age = printing.created_age(quota, now_ns)
    return [quota["metadata"].get("name", ""), ", ".join(requests), ", ".join(limits), age]


def _limit_row(limits: Object, now_ns: int) -> list[Any]:
    del now_ns
    return [limits["metadata"].get("name", ""), limits["metadata"].get("creationTimestamp") or printing.UNKNOWN]


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
        validate=faults,
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


def _fill_limits(limit_range: Object) -> None:
    """API defaults, in place: what containers get follows from what they may have."""
    for item in (limit_range.get("spec") or {}).get("limits") or []:
        if item.get("type") != "Container":
            continue
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        requested = {**default, **(item.get("min") or {}), **(item.get("defaultRequest") or {})}
        if default:
            item["default"] = default
        if requested:
            item["defaultRequest"] = requested


LIMIT_RANGE = Resource(
    group="",
    plural="limitranges",
    singular="limitrange",
    kind="LimitRange",
    versions=(Version("v1", "core/v1.LimitRange", default=_fill_limits),),
    storage_version="v1",
    strategy=Strategy(allows_create_on_update=True),
    short_names=("limits",),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the limit range, unique within its namespace."),
            Column("Created At", "date", description="When the limit range was created."),
        ),
        row=_limit_row,
    ),
)
