"""Resource definition of Lease (coordination.k8s.io/v1): defaults, validation, table.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. It is the smallest definition of a kind with validation, and so an
example for a new one.

Source: recorded responses (tests/conformance/golden); the API reference of coordination.k8s.io/v1.
"""

from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import checks, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version


def set_defaults(lease: Object) -> None:
    """Sets the fields that a lease always shows, in place."""
    lease.setdefault("spec", {})


def _drop_gated_fields(lease: Object) -> None:
    """Removes the fields of coordinated leader election, whose feature gate is off."""
    for field in ("strategy", "preferredHolder"):
        (lease.get("spec") or {}).pop(field, None)


def validate(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a Lease to be stored."""
    spec = new.get("spec") or {}
    duration_s, path = spec.get("leaseDurationSeconds"), "spec.leaseDurationSeconds"
    errors = checks.holds(duration_s is None or duration_s > 0, path, duration_s, "must be greater than 0")
    return errors + checks.not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")


RESOURCE = Resource(
    group="coordination.k8s.io",
    plural="leases",
    kind="Lease",
    versions=(Version("v1", "coordination/v1.Lease", default=set_defaults),),
    strategy=Strategy(
        prepare_create=_drop_gated_fields,
        prepare_update=lambda new, _old: _drop_gated_fields(new),
        validate=validate,
        allows_unconditional_update=False,
        allows_bare_finalizers=True,
        allows_create_on_update=True,
    ),
    printer=tables.named(
        "lease",
        Column("Holder", description="Who holds the lease."),
        cells=lambda lease, _now_ns: [(lease.get("spec") or {}).get("holderIdentity", "")],
    ),
)
