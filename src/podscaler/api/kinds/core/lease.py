"""The record of Lease (coordination.k8s.io/v1).

Source: golden captures; the API reference of coordination.k8s.io/v1.
"""

from typing import Any

from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version


def fill(lease: Object) -> None:
    """What a lease always shows, in place."""
    lease.setdefault("spec", {})


def _drop_gated(lease: Object) -> None:
    """Leave out what belongs to coordinated leader election, a feature that is off."""
    for name in ("strategy", "preferredHolder"):
        (lease.get("spec") or {}).pop(name, None)


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a Lease to be stored."""
    del old
    spec = new.get("spec") or {}
    found = []
    duration_s, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration_s is not None and duration_s <= 0:
        found.append(invalid("spec.leaseDurationSeconds", duration_s, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        found.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return found


def _row(lease: Object, now_ns: int) -> list[Any]:
    holder = (lease.get("spec") or {}).get("holderIdentity", "")
    return [lease["metadata"].get("name", ""), holder, printing.created_age(lease, now_ns)]


RESOURCE = Resource(
    group="coordination.k8s.io",
    plural="leases",
    singular="lease",
    kind="Lease",
    versions=(Version("v1", "coordination/v1.Lease", default=fill),),
    storage_version="v1",
    strategy=Strategy(
        prepare_create=_drop_gated,
        prepare_update=lambda new, _old: _drop_gated(new),
        validate=faults,
        allows_unconditional_update=False,
        allows_bare_finalizers=True,
        allows_create_on_update=True,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the lease, unique within its namespace."),
            Column("Holder", description="Who holds the lease."),
            Column("Age", description="Time since the lease was created."),
        ),
        row=_row,
    ),
)
