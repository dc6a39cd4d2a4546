"""Resource definition of PriorityClass (scheduling.k8s.io/v1), the priority of pods, which scheduling here ignores.

`podscaler.controlplane.admission.pod_classes` sets priorities of pods, and creates the classes of SYSTEM. RESOURCE, at
the end, registers the functions above it as hooks, which `api.resource.resources` explains; `api.kinds.catalog` lists
it for the API server. A new field needs regenerated type facts (CONTRIBUTING.md), its default and its validation here;
a new column, a cell in `_cells`.

Source: the API reference of scheduling.k8s.io/v1; kube-apiserver's validation messages.
"""

from typing import Any

from podscaler.api.machinery.field import FieldError, forbidden, invalid
from podscaler.api.resource import checks, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_USER_VALUE_MAX = 1_000_000_000
"""The highest value of classes other than SYSTEM."""
_SYSTEM_PREFIX = "system-"
SYSTEM: dict[str, Object] = {
    "system-node-critical": {
        "value": 2_000_001_000,
        "description": "Used for system critical pods that must not be moved from their current node.",
        "preemptionPolicy": "PreemptLowerPriority",
    },
    "system-cluster-critical": {
        "value": 2_000_000_000,
        "description": "Used for system critical pods that must run in the cluster, but can be moved to another node "
        "if necessary.",
        "preemptionPolicy": "PreemptLowerPriority",
    },
}
"""Name -> the class, without metadata, of those that the API server creates in every cluster."""
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")


def set_defaults(priority_class: Object) -> None:
    """API defaults, in place: pods of the class preempt those of lower priority."""
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a PriorityClass to be stored; its value and preemption policy never change."""
    priority, preemption_policy = new.get("value", 0), new.get("preemptionPolicy", "")
    if old is not None:
        fixed_fields = (
            ("value", priority, old.get("value", 0)),
            ("preemptionPolicy", preemption_policy, old.get("preemptionPolicy", "")),
        )
        return [
            _immutable_error(name, new_value) for name, new_value, old_value in fixed_fields if new_value != old_value
        ]
    errors = []
    name = new["metadata"].get("name", "")
    if name.startswith(_SYSTEM_PREFIX) and name not in SYSTEM:
        message = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only"
        errors.append(forbidden("metadata.name", f"{message}. error: {name} is not a known system priority class"))
    elif priority > _USER_VALUE_MAX and name not in SYSTEM:
        message = f"maximum allowed value of a user defined priority is {_USER_VALUE_MAX}"
        errors.append(forbidden("value", message))
    return errors + checks.one_of(preemption_policy, "preemptionPolicy", _PREEMPTION_POLICIES)


def _immutable_error(name: str, value: Any) -> FieldError:
    """The error of a changed field; `value` is the new value, which kube-apiserver does not show for the priority."""
    if name == "value":
        return forbidden("value", "may not be changed in an update.")
    return invalid(name, value, checks.IMMUTABLE)


def _without_metadata(priority_class: Object) -> Any:
    """The part of a class whose changes increase its generation: all fields but the metadata."""
    return {name: value for name, value in priority_class.items() if name != "metadata"}


def _cells(priority_class: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: priority, whether it is the default, preemption policy."""
    return [
        priority_class.get("value", 0),
        bool(priority_class.get("globalDefault")),
        priority_class.get("preemptionPolicy", ""),
    ]


RESOURCE = Resource(
    group="scheduling.k8s.io",
    plural="priorityclasses",
    kind="PriorityClass",
    versions=(Version("v1", "scheduling/v1.PriorityClass", default=set_defaults),),
    namespaced=False,
    short_names=("pc",),
    strategy=Strategy(
        validate=validate,
        has_generation=True,
        spec_of=_without_metadata,
        permanent_names=dict.fromkeys(SYSTEM, "this is a system priority class and cannot be deleted"),
    ),
    printer=tables.named(
        "priority class",
        Column("Value", "integer", description="The priority; higher ones come first."),
        Column("Global-Default", "boolean", description="Whether pods that name no class have this one."),
        tables.AGE,
        Column("PreemptionPolicy", description="Whether pods of this class may take others' places."),
        cells=_cells,
        note="",
    ),
)
