"""The records of ReplicaSet (apps/v1) and of its ancestor ReplicationController (core/v1).

Source: golden captures; the API reference of apps/v1 and core/v1.
"""

from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_template, pod_warnings
from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, required
from podscaler.api.resource import label_selector, metadata, scaling, status_subresource
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_COUNTS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


def fill(replica_set: Object) -> None:
    """API defaults of ReplicaSet, in place."""
    spec = replica_set.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    pod_defaults.fill_template(spec)
    replica_set.setdefault("status", {}).setdefault("replicas", 0)


def fill_controller(controller: Object) -> None:
    """API defaults of ReplicationController, in place: selector and labels come from the template."""
    spec = controller.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if spec.get("template"):
        _adopt_labels(controller, (spec["template"].get("metadata") or {}).get("labels"))
        pod_defaults.fill_template(spec)
    controller.setdefault("status", {}).setdefault("replicas", 0)


def _adopt_labels(controller: Object, labels: dict[str, str] | None) -> None:
    if not labels:
        return
    if not controller["spec"].get("selector"):
        controller["spec"]["selector"] = {**labels}
    if not controller.setdefault("metadata", {}).get("labels"):
        controller["metadata"]["labels"] = {**labels}


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a ReplicaSet to be stored."""
    spec = new["spec"]
    found = workload_spec.counts(spec, "replicas", "minReadySeconds")
    found += workload_spec.selector(spec, "deployment")  # upstream's word, also here
    unusable = workload_spec.selects(spec)
    found += unusable or workload_spec.template(spec, old_spec=old["spec"] if old else None, kind="ReplicaSet")
    if old:
        found += workload_spec.immutable("selector", new, old)
    return found


def controller_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a ReplicationController to be stored."""
    del old
    spec = new["spec"]
    found = workload_spec.counts(spec, "minReadySeconds")
    selector = spec.get("selector") or {}
    found += metadata.label_faults(selector, "spec.selector") if selector else [required("spec.selector")]
    found += workload_spec.counts(spec, "replicas")
    template = spec.get("template")
    if template is None:
        return [*found, required("spec.template")]
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector:
        found += workload_spec.unselected({"matchLabels": selector}, labels)
    found += pod_template.faults(template, "spec.template")
    return found + workload_spec.endless(template, "ReplicationController")


def status_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with the status of either kind."""
    del old
    status = new.get("status") or {}
    found = workload_spec.status_counts(status, *_COUNTS)
    for small in ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
        found += workload_spec.not_more(status, small, "replicas")
    return found + workload_spec.not_more(status, "availableReplicas", "readyReplicas")


def _row(workload: Object, now_ns: int, selector: str) -> list[Any]:
    spec, status = workload["spec"], workload.get("status") or {}
    names, images = printing.containers((spec.get("template") or {}).get("spec") or {})
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    name = workload["metadata"].get("name", "")
    return [name, *counts, printing.created_age(workload, now_ns), names, images, selector]


def _columns(kind: str) -> tuple[Column, ...]:
    return (
        Column("Name", format="name", description=f"Name of the {kind}, unique within its namespace."),
        Column("Desired", "integer", description="How many pods are asked for."),
        Column("Current", "integer", description="How many pods there are."),
        Column("Ready", "integer", description="How many pods are ready."),
        Column("Age", description=f"Time since the {kind} was created."),
        Column("Containers", description="Names of the template's containers.", priority=1),
        Column("Images", description="Images of the template's containers.", priority=1),
        Column("Selector", description=f"Which pods belong to the {kind}.", priority=1),
    )


def _fields(workload: Object) -> dict[str, str]:
    return {"status.replicas": str((workload.get("status") or {}).get("replicas", 0))}


RESOURCE = Resource(
    group="apps",
    plural="replicasets",
    singular="replicaset",
    kind="ReplicaSet",
    versions=(Version("v1", "apps/v1.ReplicaSet", default=fill),),
    storage_version="v1",
    short_names=("rs",),
    categories=("all",),
    has_status=True,
    scale=scaling.BY_LABEL_SELECTOR,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"replicas": 0}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=faults,
        validate_status=status_faults,
        has_generation=True,
        warnings=pod_warnings.of_template,
    ),
    printer=Printer(
        _columns("replica set"),
        lambda obj, now_ns: _row(obj, now_ns, label_selector.text(obj["spec"].get("selector"))),
    ),
)

REPLICATION_CONTROLLER = Resource(
    group="",
    plural="replicationcontrollers",
    singular="replicationcontroller",
    kind="ReplicationController",
    versions=(Version("v1", "core/v1.ReplicationController", default=fill_controller),),
    storage_version="v1",
    short_names=("rc",),
    categories=("all",),
    has_status=True,
    scale=scaling.BY_LABEL_PAIRS,
    fields=_fields,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"replicas": 0}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=controller_faults,
        validate_status=status_faults,
        has_generation=True,
        warnings=pod_warnings.of_template,
        orphans_by_default=True,
    ),
    printer=Printer(
        _columns("replication controller"),
        lambda obj, now_ns: _row(obj, now_ns, printing.labels(obj["spec"].get("selector"))),
    ),
)
