"""The record of PodDisruptionBudget (policy/v1).

Its status is written by the disruption controller, and by evictions, which take from `disruptionsAllowed`.

Source: the API reference of policy/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.machinery import int_or_percent, printing
from podscaler.api.machinery.field import FieldError, invalid, not_supported
from podscaler.api.resource import conditions_validation, go_struct, label_selector, status_subresource
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_NONE = "N/A"


def fill(budget: Object) -> None:
    """What a budget always shows, in place."""
    budget.setdefault("spec", {})
    status = budget.setdefault("status", {})
    for name in _COUNTS:
        status.setdefault(name, 0)


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a PodDisruptionBudget to be stored."""
    del old
    spec = new["spec"]
    found = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = go_struct.shown(spec, "policy/v1.PodDisruptionBudgetSpec")
        found.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for name in ("minAvailable", "maxUnavailable"):
        if (amount := spec.get(name)) is not None:
            found += int_or_percent.faults(amount, f"spec.{name}")
            found += int_or_percent.at_most_all(amount, f"spec.{name}")
    found += label_selector.faults(spec.get("selector") or {}, "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        found.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
    return found


def status_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the status of a PodDisruptionBudget."""
    del old
    status = new.get("status") or {}
    found = workload_spec.status_counts(status, *_COUNTS)
    return found + conditions_validation.faults(status.get("conditions") or [], "status.conditions")


def _row(budget: Object, now_ns: int) -> list[Any]:
    spec, status = budget["spec"], budget.get("status") or {}
    bounds = [spec.get(name) for name in ("minAvailable", "maxUnavailable")]
    shown = [_NONE if bound is None else str(bound) for bound in bounds]
    allowed, age = status.get("disruptionsAllowed", 0), printing.created_age(budget, now_ns)
    return [budget["metadata"].get("name", ""), *shown, allowed, age]


RESOURCE = Resource(
    group="policy",
    plural="poddisruptionbudgets",
    singular="poddisruptionbudget",
    kind="PodDisruptionBudget",
    versions=(Version("v1", "policy/v1.PodDisruptionBudget", default=fill),),
    storage_version="v1",
    short_names=("pdb",),
    has_status=True,
    strategy=Strategy(
        allows_unconditional_update=False,
        allows_bare_finalizers=True,
        prepare_create=status_subresource.start_with(dict.fromkeys(_COUNTS, 0)),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=faults,
        validate_status=status_faults,
        has_generation=True,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the budget, unique within its namespace."),
            Column("Min Available", description="How many pods must stay available."),
            Column("Max Unavailable", description="How many pods may be unavailable."),
            Column("Allowed Disruptions", "integer", description="How many pods may be evicted now."),
            Column("Age", description="Time since the budget was created."),
        ),
        row=_row,
    ),
)
