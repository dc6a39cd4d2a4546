"""The records of ReplicaSet (apps/v1) and of its predecessor ReplicationController (core/v1).

RESOURCE and REPLICATION_CONTROLLER register the functions of this module as hooks, which `api.resource.resources`
explains; `api.kinds.catalog` lists them for the API server. A new field needs regenerated type facts (CONTRIBUTING.md),
its default and its validation here; a new column of both kinds, a cell in `_printer`.

Source: recorded responses (tests/conformance/golden); the API reference of apps/v1 and core/v1.
"""

from collections.abc import Callable
from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_validation, pod_warnings
from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, required
from podscaler.api.resource import label_selector, metadata, scale_mappings, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

_LIMITED_COUNTS = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
"""Counts of the status that must not be above `replicas`."""
_STATUS_COUNTS = ("replicas", *_LIMITED_COUNTS, "observedGeneration")


def set_defaults(replica_set: Object) -> None:
    """API defaults of ReplicaSet, in place: one replica, pod template."""
    spec = replica_set.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    pod_defaults.set_template_defaults(spec)
    replica_set.setdefault("status", {}).setdefault("replicas", 0)


def set_controller_defaults(controller: Object) -> None:
    """API defaults of ReplicationController, in place: selector and labels come from the template."""
    spec = controller.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if spec.get("template"):
        _set_default_selector_and_labels(controller, (spec["template"].get("metadata") or {}).get("labels"))
        pod_defaults.set_template_defaults(spec)
    controller.setdefault("status", {}).setdefault("replicas", 0)


def _set_default_selector_and_labels(controller: Object, template_labels: dict[str, str] | None) -> None:
    """Sets a missing selector and missing labels of a controller to the labels of its template, in place."""
    if not template_labels:
        return
    if not controller["spec"].get("selector"):
        controller["spec"]["selector"] = {**template_labels}
    if not controller.setdefault("metadata", {}).get("labels"):
        controller["metadata"]["labels"] = {**template_labels}


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a ReplicaSet to be stored."""
    spec = new["spec"]
    errors = workload_spec.count_errors(spec, "replicas", "minReadySeconds")
    errors += workload_spec.selector_and_template_errors(spec, old["spec"] if old else None)
    return errors + (workload_spec.immutable_errors("selector", new, old) if old else [])


def validate_controller(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of a ReplicationController to be stored."""
    spec = new["spec"]
    errors = workload_spec.count_errors(spec, "minReadySeconds")  # `replicas` after the selector, as upstream
    selector = spec.get("selector") or {}
    errors += metadata.label_errors(selector, "spec.selector") if selector else [required("spec.selector")]
    errors += workload_spec.count_errors(spec, "replicas")
    template = spec.get("template")
    if template is None:
        return [*errors, required("spec.template")]
    if selector:
        errors += workload_spec.unselected_errors({"matchLabels": selector}, workload_spec.template_labels(spec))
    errors += pod_validation.validate_template(template, "spec.template")
    return errors + workload_spec.restart_errors(template, "ReplicationController")


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of either kind."""
    status = new.get("status") or {}
    errors = workload_spec.status_count_errors(status, *_STATUS_COUNTS)
    return errors + workload_spec.replica_count_errors(status, *_LIMITED_COUNTS)


def _printer(kind: str, selector_text: Callable[[Object | None], str]) -> Printer:
    """The table of a kind: desired, current and ready pods, containers.

    Args:
        kind: the words for an object in descriptions.
        selector_text: from the value of `spec.selector` to its text.
    """

    def cells(workload: Object, _now_ns: int) -> list[Any]:
        spec, status = workload["spec"], workload.get("status") or {}
        counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
        return [*counts, *workload_spec.container_cells(workload), selector_text(spec.get("selector"))]

    return tables.named(
        kind,
        Column("Desired", "integer", description="How many pods are asked for."),
        Column("Current", "integer", description="How many pods there are."),
        Column("Ready", "integer", description="How many pods are ready."),
        tables.AGE,
        *workload_spec.CONTAINER_COLUMNS,
        workload_spec.selector_column(kind),
        cells=cells,
    )


RESOURCE = Resource(
    group="apps",
    plural="replicasets",
    kind="ReplicaSet",
    versions=(Version("v1", "apps/v1.ReplicaSet", default=set_defaults),),
    short_names=("rs",),
    categories=("all",),
    has_status=True,
    scale=scale_mappings.BY_LABEL_SELECTOR,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"replicas": 0}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate,
        validate_status=validate_status,
        has_generation=True,
        warnings=pod_warnings.of_template,
    ),
    printer=_printer("replica set", label_selector.text),
)

REPLICATION_CONTROLLER = Resource(
    group="",
    plural="replicationcontrollers",
    kind="ReplicationController",
    versions=(Version("v1", "core/v1.ReplicationController", default=set_controller_defaults),),
    short_names=("rc",),
    categories=("all",),
    has_status=True,
    scale=scale_mappings.BY_LABEL_PAIRS,
    fields=lambda controller: {"status.replicas": str((controller.get("status") or {}).get("replicas", 0))},
    strategy=Strategy(
        prepare_create=status_subresource.start_with({"replicas": 0}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate_controller,
        validate_status=validate_status,
        has_generation=True,
        warnings=pod_warnings.of_template,
        orphans_by_default=True,
    ),
    printer=_printer("replication controller", printing.labels),
)
