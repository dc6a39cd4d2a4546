"""Resource definition of Deployment (apps/v1): defaults, validation, scale, table.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new field needs regenerated type facts (CONTRIBUTING.md), its default
and its validation here; a new column, a cell in `_cells` at the same position.

Source: recorded responses (tests/conformance/golden); the API reference of apps/v1.
"""

from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_warnings
from podscaler.api.machinery import int_or_percent
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource import checks, go_struct, label_selector, scale_mappings, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_POD_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
_STATUS_COUNTS = ("observedGeneration", *_POD_COUNTS, "collisionCount")


def set_defaults(deployment: Object) -> None:
    """API defaults, in place: one replica, rolling update by 25 %, limits, pod template."""
    spec = deployment.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling_update = strategy.setdefault("rollingUpdate", {})
        rolling_update.setdefault("maxUnavailable", "25%")
        rolling_update.setdefault("maxSurge", "25%")
    pod_defaults.set_template_defaults(spec)
    deployment.setdefault("status", {})


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a Deployment to be stored."""
    spec, old_spec = new["spec"], old["spec"] if old else None
    errors = workload_spec.count_errors(spec, "replicas")
    errors += workload_spec.selector_and_template_errors(spec, old_spec)
    errors += _strategy_errors(spec.get("strategy") or {})
    errors += workload_spec.count_errors(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline_s, path = spec.get("progressDeadlineSeconds"), "spec.progressDeadlineSeconds"
    is_deadline_later = deadline_s is None or deadline_s > spec.get("minReadySeconds", 0)
    errors += checks.holds(is_deadline_later, path, deadline_s, "must be greater than minReadySeconds")
    return errors + (workload_spec.immutable_errors("selector", new, old) if old else [])


def _strategy_errors(strategy: Object) -> list[FieldError]:
    """Errors of the strategy, which has rolling parameters only if it is RollingUpdate."""
    strategy_type, rolling_update = strategy.get("type", ""), strategy.get("rollingUpdate")
    path = "spec.strategy"
    if strategy_type == "Recreate":
        if rolling_update is None:
            return []
        return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
    if strategy_type == "RollingUpdate":
        return [required(f"{path}.rollingUpdate")] if rolling_update is None else _rolling_errors(rolling_update, path)
    printed = go_struct.printed(strategy, "apps/v1.DeploymentStrategy")
    return [not_supported(path, printed, ("Recreate", "RollingUpdate"))]


def _rolling_errors(rolling_update: Object, path: str) -> list[FieldError]:
    """Errors of maxUnavailable, at most 100 %, and maxSurge, which has no maximum; they may not both be zero."""
    unavailable, surge = rolling_update.get("maxUnavailable", 0), rolling_update.get("maxSurge", 0)
    field_path = f"{path}.rollingUpdate"
    errors = int_or_percent.amount_errors(unavailable, f"{field_path}.maxUnavailable")
    errors += int_or_percent.amount_errors(surge, f"{field_path}.maxSurge")
    if int_or_percent.is_zero(unavailable) and int_or_percent.is_zero(surge):
        errors.append(invalid(f"{field_path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + int_or_percent.over_100_percent_errors(unavailable, f"{field_path}.maxUnavailable")


def _prepare_status_update(new: Object, old: Object) -> None:
    """Keeps the spec and, as upstream, the labels, in place."""
    status_subresource.keep_spec(new, old)
    metadata = new["metadata"]
    metadata.pop("labels", None)
    if "labels" in old["metadata"]:
        metadata["labels"] = old["metadata"]["labels"]


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of a Deployment."""
    status = new.get("status") or {}
    errors = workload_spec.status_count_errors(status, *_STATUS_COUNTS)
    return errors + workload_spec.replica_count_errors(status, "updatedReplicas", "readyReplicas", "availableReplicas")


def _spec_and_annotations(deployment: Object) -> Any:
    """The part whose changes increase the generation: the spec and the annotations, which its ReplicaSets inherit."""
    return {"spec": deployment.get("spec"), "annotations": deployment["metadata"].get("annotations") or {}}


def _cells(deployment: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: ready, up-to-date and available pods, containers."""
    spec, status = deployment["spec"], deployment.get("status") or {}
    return [
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        *workload_spec.container_cells(deployment),
        label_selector.text(spec.get("selector")),
    ]


RESOURCE = Resource(
    group="apps",
    plural="deployments",
    kind="Deployment",
    versions=(Version("v1", "apps/v1.Deployment", default=set_defaults),),
    short_names=("deploy",),
    categories=("all",),
    has_status=True,
    scale=scale_mappings.BY_LABEL_SELECTOR,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=_prepare_status_update,
        validate=validate,
        validate_status=validate_status,
        has_generation=True,
        warnings=pod_warnings.of_template,
        spec_of=_spec_and_annotations,
    ),
    printer=tables.named(
        "deployment",
        Column("Ready", description="How many pods are ready, of those asked for."),
        Column("Up-to-date", description="How many pods have the newest template."),
        Column("Available", description="How many pods have been ready for long enough."),
        tables.AGE,
        *workload_spec.CONTAINER_COLUMNS,
        workload_spec.selector_column("deployment"),
        cells=_cells,
    ),
)
