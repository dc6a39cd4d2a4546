"""Resource definition of ResourceQuota (core/v1): validation and table; `quota_usage` measures its use.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. Quantities were checked when they were decoded. A new scope: an entry
of _RESOURCES_BY_SCOPE (and of the two tables of scopes below it), and a case in `quota_usage`. A new resource that is
counted: an entry of _INTEGER_RESOURCES, and of `names.quota_resource_name_errors`.

Source: the API reference of core/v1; kube-apiserver's validation messages.
"""

from typing import Any

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.machinery.quantity import UNIT_MILLI, Quantity
from podscaler.api.resource import checks, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_LIMIT_PREFIX = "limits."
_CPU_AND_MEMORY = frozenset(f"{prefix}{name}" for prefix in ("", "limits.", "requests.") for name in ("cpu", "memory"))
_POD_RESOURCES = _CPU_AND_MEMORY | {"pods"}
_RESOURCES_BY_SCOPE = {
    "BestEffort": frozenset({"pods"}),
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "NotBestEffort": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "Terminating": _POD_RESOURCES,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""Scope of a quota -> the standard resources that a quota with this scope can limit."""
_CONFLICTING_SCOPES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
"""Scopes that exclude each other."""
_SCOPES_WITHOUT_VALUES = ("Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity")
"""Scopes that a scopeSelector can only require to exist; in the order of the error message."""
_OBJECT_COUNTS = ("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets")
_INTEGER_RESOURCES = frozenset({*_OBJECT_COUNTS, "services", "services.loadbalancers", "services.nodeports"})


def set_defaults(quota: Object) -> None:
    """API defaults, in place: spec and status are always present."""
    quota.setdefault("spec", {})
    quota.setdefault("status", {})


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a ResourceQuota to be stored; its scopes never change."""
    spec = new.get("spec") or {}
    hard, scopes, selector = spec.get("hard") or {}, spec.get("scopes") or [], spec.get("scopeSelector")
    errors = _amount_errors(hard, "spec.hard")
    errors += _scope_errors(scopes, hard, "spec.scopes")
    if selector is not None:
        errors += _selector_errors(spec, hard, "spec.scopeSelector.matchExpressions")
    if old is not None and set(scopes) != set((old.get("spec") or {}).get("scopes") or []):
        errors.append(invalid("spec.scopes", spec.get("scopes"), checks.IMMUTABLE))
    return errors


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of a ResourceQuota."""
    status = new.get("status") or {}
    return [error for field in ("hard", "used") for error in _amount_errors(status.get(field) or {}, f"status.{field}")]


def _amount_errors(amounts: Object, path: str) -> list[FieldError]:
    """Field errors of amounts by resource name: invalid names, negative amounts, fractions of counts."""
    errors = []
    for resource in sorted(amounts):
        amount_path, amount = f"{path}[{resource}]", Quantity.parse(str(amounts[resource]))
        errors += checks.well_formed(resource, amount_path, names.quota_resource_name_errors)
        if amount.sign() < 0:
            errors.append(invalid(amount_path, str(amount), checks.NOT_NEGATIVE))
        is_counted = resource in _INTEGER_RESOURCES or names.is_extended_resource(resource)
        if is_counted and amount.milli_value() % UNIT_MILLI:
            errors.append(invalid(amount_path, str(amount), "must be an integer"))
    return errors


def _scope_errors(scopes: list[str], hard: Object, path: str) -> list[FieldError]:
    """Field errors of `spec.scopes`: unsupported scopes, conflicts, one for each resource in `hard` out of scope."""
    errors = []
    for scope in scopes:
        errors += checks.holds(scope in _RESOURCES_BY_SCOPE, path, scopes, "unsupported scope")
        errors += [  # one for each resource, all alike, as upstream
            invalid(path, scopes, "unsupported scope applied to resource") for _ in _resources_out_of_scope(scope, hard)
        ]
    return errors + [invalid(path, scopes, "conflicting scopes") for pair in _CONFLICTING_SCOPES if pair <= set(scopes)]


def _resources_out_of_scope(scope: str, hard: Object) -> list[str]:
    """The standard resources in `hard` that a quota with the scope cannot limit; none for an unknown scope."""
    allowed_resources = _RESOURCES_BY_SCOPE.get(scope)
    if not allowed_resources:
        return []
    return [name for name in hard if names.is_standard_quota_resource(name) and name not in allowed_resources]


def _selector_errors(spec: Object, hard: Object, path: str) -> list[FieldError]:
    """Errors of the scope selector: unknown scopes, scopes that do not fit the limits or each other."""
    selector = spec["scopeSelector"]
    requirements = selector.get("matchExpressions") or []
    errors = []
    for requirement in requirements:
        scope = requirement.get("scopeName", "")
        errors += checks.holds(scope in _RESOURCES_BY_SCOPE, f"{path}.scopeName", scope, "unsupported scope")
        errors += [
            invalid(path, selector, "unsupported scope applied to resource")
            for _ in _resources_out_of_scope(scope, hard)
        ]
        errors += _operator_errors(requirement, path)
    scope_names = {requirement.get("scopeName", "") for requirement in requirements}
    return errors + [  # the shown value is spec.scopes, as upstream
        invalid(path, spec.get("scopes"), "conflicting scopes") for pair in _CONFLICTING_SCOPES if pair <= scope_names
    ]


def _operator_errors(requirement: Object, path: str) -> list[FieldError]:
    """Errors of a requirement's operator, and of values that it needs or does not have."""
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    errors = []
    if requirement.get("scopeName") in _SCOPES_WITHOUT_VALUES and operator != "Exists":
        last_scope = _SCOPES_WITHOUT_VALUES[-1]
        scopes_text = ", ".join(f"ResourceQuotaScope{name}" for name in _SCOPES_WITHOUT_VALUES[:-1])
        message = f"must be 'Exists' when scope is any of {scopes_text} or ResourceQuotaScope{last_scope}"
        errors.append(invalid(f"{path}.operator", operator, message))
    if operator in ("In", "NotIn"):
        message = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        return errors if values else [*errors, required(f"{path}.values", message)]
    if operator in ("Exists", "DoesNotExist"):
        message = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        return [*errors, invalid(f"{path}.values", values, message)] if values else errors
    return [*errors, invalid(f"{path}.operator", operator, "not a valid selector operator")]


def _cells(quota: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: `NAME: USED/HARD` of requests and counts, and of limits."""
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    usage_texts = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [usage for name, usage in usage_texts.items() if name.startswith(_LIMIT_PREFIX)]
    requests = [usage for name, usage in usage_texts.items() if not name.startswith(_LIMIT_PREFIX)]
    return [", ".join(requests), ", ".join(limits)]


RESOURCE = Resource(
    group="",
    plural="resourcequotas",
    kind="ResourceQuota",
    returns_deleted_object=True,
    versions=(Version("v1", "core/v1.ResourceQuota", default=set_defaults),),
    short_names=("quota",),
    has_status=True,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate,
        validate_status=validate_status,
    ),
    printer=tables.named(
        "quota",
        Column("Request", description="What is used, of what may be."),
        Column("Limit", description="The same for limits."),
        cells=_cells,
    ),
)
