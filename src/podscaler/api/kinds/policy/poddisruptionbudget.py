"""Resource definition of PodDisruptionBudget (policy/v1): defaults, validation, table.

`podscaler.controlplane.controllers.apps.disruption` writes its status; `podscaler.controlplane.registry.evictions`
reduces `disruptionsAllowed`. RESOURCE, at the end, registers the functions above it as hooks, which
`api.resource.resources` explains; `api.kinds.catalog` lists it for the API server. A new field needs regenerated type
facts (CONTRIBUTING.md), its default and its validation here; a new column, a cell in `_cells`.

Source: the API reference of policy/v1; kube-apiserver's validation messages.
"""

from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.machinery import int_or_percent
from podscaler.api.machinery.field import FieldError, invalid
from podscaler.api.resource import checks, go_struct, label_selector, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_NOT_SET = "N/A"


def set_defaults(budget: Object) -> None:
    """API defaults, in place: the counts in the status are 0."""
    budget.setdefault("spec", {})
    status = budget.setdefault("status", {})
    for field in _COUNTS:
        status.setdefault(field, 0)


def validate(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a PodDisruptionBudget to be stored."""
    spec = new["spec"]
    errors = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        printed = go_struct.printed(spec, "policy/v1.PodDisruptionBudgetSpec")
        errors.append(invalid("spec", printed, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if (amount := spec.get(field)) is not None:
            errors += int_or_percent.amount_errors(amount, f"spec.{field}")
            errors += int_or_percent.over_100_percent_errors(amount, f"spec.{field}")
    errors += label_selector.validate(spec.get("selector") or {}, "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    return errors + checks.optional_one_of(policy, "spec.unhealthyPodEvictionPolicy", _EVICTION_POLICIES)


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of a PodDisruptionBudget."""
    status = new.get("status") or {}
    errors = workload_spec.status_count_errors(status, *_COUNTS)
    return errors + status_subresource.validate_conditions(status.get("conditions"), "status.conditions")


def _cells(budget: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: minAvailable, maxUnavailable (`N/A` if not set), allowed disruptions."""
    spec, status = budget["spec"], budget.get("status") or {}
    pod_bounds = [spec.get(field) for field in ("minAvailable", "maxUnavailable")]
    bound_texts = [_NOT_SET if bound is None else str(bound) for bound in pod_bounds]
    return [*bound_texts, status.get("disruptionsAllowed", 0)]


RESOURCE = Resource(
    group="policy",
    plural="poddisruptionbudgets",
    kind="PodDisruptionBudget",
    versions=(Version("v1", "policy/v1.PodDisruptionBudget", default=set_defaults),),
    short_names=("pdb",),
    has_status=True,
    strategy=Strategy(
        allows_unconditional_update=False,
        allows_bare_finalizers=True,
        prepare_create=status_subresource.start_with(dict.fromkeys(_COUNTS, 0)),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate,
        validate_status=validate_status,
        has_generation=True,
    ),
    printer=tables.named(
        "budget",
        Column("Min Available", description="How many pods must stay available."),
        Column("Max Unavailable", description="How many pods may be unavailable."),
        Column("Allowed Disruptions", "integer", description="How many pods may be evicted now."),
        cells=_cells,
    ),
)
