"""The record of Deployment (apps/v1).

Source: golden captures; the API reference of apps/v1.
"""

from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_warnings
from podscaler.api.machinery import int_or_percent, printing
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource import go_struct, label_selector, scaling, status_subresource
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_COUNTS = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def fill(deployment: Object) -> None:
    """API defaults, in place."""
    spec = deployment.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    pod_defaults.fill_template(spec)
    deployment.setdefault("status", {})


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a Deployment to be stored."""
    spec = new["spec"]
    old_spec = old["spec"] if old else None
    found = workload_spec.counts(spec, "replicas")
    found += workload_spec.selector(spec, "deployment")
    unusable = workload_spec.selects(spec)
    found += unusable or workload_spec.template(spec, old_spec=old_spec, kind="ReplicaSet")
    found += _strategy_faults(spec.get("strategy") or {})
    found += workload_spec.counts(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    found += _deadline_faults(spec)
    if old:
        found += workload_spec.immutable("selector", new, old)
    return found


def _strategy_faults(strategy: Object) -> list[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    path = "spec.strategy"
    if kind == "Recreate":
        if rolling is None:
            return []
        return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
    if kind == "RollingUpdate":
        return [required(f"{path}.rollingUpdate")] if rolling is None else _rolling_faults(rolling, path)
    shown = go_struct.shown(strategy, "apps/v1.DeploymentStrategy")
    return [not_supported(path, shown, ("Recreate", "RollingUpdate"))]


def _rolling_faults(rolling: Object, path: str) -> list[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    place = f"{path}.rollingUpdate"
    found = int_or_percent.faults(unavailable, f"{place}.maxUnavailable")
    found += int_or_percent.faults(surge, f"{place}.maxSurge")
    if int_or_percent.is_zero(unavailable) and int_or_percent.is_zero(surge):
        found.append(invalid(f"{place}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    found += int_or_percent.at_most_all(unavailable, f"{place}.maxUnavailable")
    return found


def _deadline_faults(spec: Object) -> list[FieldError]:
    deadline_s = spec.get("progressDeadlineSeconds")
    if deadline_s is None or deadline_s > spec.get("minReadySeconds", 0):
        return []
    return [invalid("spec.progressDeadlineSeconds", deadline_s, "must be greater than minReadySeconds")]


def _prepare_status_update(new: Object, old: Object) -> None:
    """Through its status a Deployment gets neither another spec nor other labels."""
    status_subresource.keep_spec(new, old)
    metadata = new["metadata"]
    metadata.pop("labels", None)
    if "labels" in old["metadata"]:
        metadata["labels"] = old["metadata"]["labels"]


def status_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the status of a Deployment."""
    del old
    status = new.get("status") or {}
    found = workload_spec.status_counts(status, *_COUNTS, "unavailableReplicas", "collisionCount")
    for small in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        found += workload_spec.not_more(status, small, "replicas")
    return found + workload_spec.not_more(status, "availableReplicas", "readyReplicas")


def _content(deployment: Object) -> Any:
    """What counts as a change: annotations do, for they are handed on to ReplicaSets."""
    return {"spec": deployment.get("spec"), "annotations": deployment["metadata"].get("annotations") or {}}


def _row(deployment: Object, now_ns: int) -> list[Any]:
    spec, status = deployment["spec"], deployment.get("status") or {}
    names, images = printing.containers((spec.get("template") or {}).get("spec") or {})
    return [
        deployment["metadata"].get("name", ""),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        printing.created_age(deployment, now_ns),
        names,
        images,
        label_selector.text(spec.get("selector")),
    ]


RESOURCE = Resource(
    group="apps",
    plural="deployments",
    singular="deployment",
    kind="Deployment",
    versions=(Version("v1", "apps/v1.Deployment", default=fill),),
    storage_version="v1",
    short_names=("deploy",),
    categories=("all",),
    has_status=True,
    scale=scaling.BY_LABEL_SELECTOR,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=_prepare_status_update,
        validate=faults,
        validate_status=status_faults,
        has_generation=True,
        warnings=pod_warnings.of_template,
        spec_of=_content,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the deployment, unique within its namespace."),
            Column("Ready", description="How many pods are ready, of those asked for."),
            Column("Up-to-date", description="How many pods have the newest template."),
            Column("Available", description="How many pods have been ready for long enough."),
            Column("Age", description="Time since the deployment was created."),
            Column("Containers", description="Names of the template's containers.", priority=1),
            Column("Images", description="Images of the template's containers.", priority=1),
            Column("Selector", description="Which pods belong to the deployment.", priority=1),
        ),
        row=_row,
    ),
)
