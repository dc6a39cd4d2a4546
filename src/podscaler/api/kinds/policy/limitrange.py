"""The record of LimitRange (core/v1); `podscaler.controlplane.admission.limit_ranges` applies it to new pods.

Source: the API reference of core/v1.
"""

import uuid
from typing import Any

from podscaler.api.kinds.policy import limitrange_validation
from podscaler.api.machinery import printing
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version


def fill(limit_range: Object) -> None:
    """API defaults, in place: what containers get follows from what they may have."""
    spec = limit_range.setdefault("spec", {})
    for item in spec.get("limits") or []:
        if item.get("type") != "Container":
            continue
        default = {**(item.get("max") or {}), **(item.get("default") or {})}
        requested = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
        if default:
            item["default"] = default
        if requested:
            item["defaultRequest"] = requested
    spec.setdefault("limits", None)


def _name(limit_range: Object) -> None:
    """One without a name is named by a UUID, as no other kind is; made from its uid, since nothing here is random."""
    metadata = limit_range["metadata"]
    if not metadata.get("name"):
        metadata["name"] = str(uuid.uuid5(uuid.NAMESPACE_OID, metadata["uid"]))


def _row(limits: Object, now_ns: int) -> list[Any]:
    del now_ns
    return [limits["metadata"].get("name", ""), limits["metadata"].get("creationTimestamp") or printing.UNKNOWN]


RESOURCE = Resource(
    group="",
    plural="limitranges",
    singular="limitrange",
    kind="LimitRange",
    versions=(Version("v1", "core/v1.LimitRange", default=fill),),
    storage_version="v1",
    strategy=Strategy(allows_create_on_update=True, prepare_create=_name, validate=limitrange_validation.faults),
    short_names=("limits",),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the limit range, unique within its namespace."),
            Column("Created At", "date", description="When the limit range was created."),
        ),
        row=_row,
        empty_is_null=True,
    ),
)
