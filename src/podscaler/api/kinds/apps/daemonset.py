"""Resource definition of DaemonSet (apps/v1): defaults, validation, the template generation, table.

The annotation GENERATION_ANNOTATION, the template generation, replaces a field that apps/v1 removed. Only the server
changes it; `podscaler.controlplane.controllers.apps.daemonset_nodes` reads it.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new field needs regenerated type facts (CONTRIBUTING.md), its default
and its validation here; a new column, a cell in `_cells` at the same position.

Source: the API reference of apps/v1; kube-apiserver's conversion, strategy and validation messages.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_warnings
from podscaler.api.machinery import int_or_percent, numbers, printing
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.resource import go_struct, label_selector, semantics, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version
from podscaler.api.text import quoting
from podscaler.api.text.json_text import DecodeError

GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
"""The annotation with the number of template revisions; pods have it as a label."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")  # bounded, as Python does not convert texts of thousands of digits
_REQUIRED_COUNTS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_OPTIONAL_COUNTS = ("observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable")
_EMPTY_STATUS: Object = dict.fromkeys(_REQUIRED_COUNTS, 0)


def set_defaults(daemon_set: Object) -> None:
    """API defaults, in place: revision limit, rolling update one pod at a time, pod template, counts of the status."""
    spec = daemon_set.setdefault("spec", {})
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling_update = strategy.setdefault("rollingUpdate", {})
        rolling_update.setdefault("maxUnavailable", 1)
        rolling_update.setdefault("maxSurge", 0)
    pod_defaults.set_template_defaults(spec)
    status = daemon_set.setdefault("status", {})
    for field in _REQUIRED_COUNTS:
        status.setdefault(field, 0)


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a DaemonSet to be stored."""
    spec = new["spec"]
    errors = workload_spec.selector_errors(spec, "daemonset") if spec.get("selector") is not None else []
    errors += workload_spec.template_errors(spec, old_spec=old["spec"] if old else None, kind="DaemonSet")
    errors += workload_spec.count_errors(spec, "minReadySeconds")
    errors += _strategy_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    errors += workload_spec.count_errors(spec, "revisionHistoryLimit")
    return errors + (workload_spec.immutable_errors("selector", new, old) if old else [])


def _strategy_errors(strategy: Object, path: str) -> list[FieldError]:
    """Errors of the update strategy: OnDelete, or RollingUpdate with its parameters."""
    strategy_type, rolling_update = strategy.get("type", ""), strategy.get("rollingUpdate")
    if strategy_type == "OnDelete":
        return []
    if strategy_type != "RollingUpdate":
        printed = go_struct.printed(strategy, "apps/v1.DaemonSetUpdateStrategy")
        return [not_supported(path, printed, ("RollingUpdate", "OnDelete"))]
    if not rolling_update:
        return [required(f"{path}.rollingUpdate")]
    return _rolling_errors(rolling_update, f"{path}.rollingUpdate")


def _rolling_errors(rolling_update: Object, path: str) -> list[FieldError]:
    """Errors of maxUnavailable and maxSurge, exactly one of which is not zero."""
    errors = []
    # two loops: kube-apiserver reports percentages after amounts that are malformed or negative
    for field in ("maxUnavailable", "maxSurge"):
        errors += int_or_percent.amount_errors(rolling_update.get(field, 0), f"{path}.{field}")
    for field in ("maxUnavailable", "maxSurge"):
        errors += int_or_percent.over_100_percent_errors(rolling_update.get(field, 0), f"{path}.{field}")
    surge, unavailable = rolling_update.get("maxSurge", 0), rolling_update.get("maxUnavailable", 0)
    is_surge_zero, is_unavailable_zero = int_or_percent.is_zero(surge), int_or_percent.is_zero(unavailable)
    if is_surge_zero and is_unavailable_zero:
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    elif not is_surge_zero and not is_unavailable_zero:
        errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    return errors


def validate_status(new: Object, _old: Object | None) -> list[FieldError]:
    """The field errors of the status of a DaemonSet."""
    return workload_spec.status_count_errors(
        new.get("status") or {}, *_REQUIRED_COUNTS, *_OPTIONAL_COUNTS, "collisionCount"
    )


def _prepare_create(new: Object) -> None:
    """Sets the empty status and the first template generation, in place."""
    new["status"] = {**_EMPTY_STATUS}
    _set_template_generation(new, max(template_generation(new), 1))


def _prepare_update(new: Object, old: Object) -> None:
    """Keeps the status, and increases the template generation if the template changes, in place."""
    status_subresource.keep_status(new, old)
    is_template_changed = not semantics.same(new["spec"].get("template"), old["spec"].get("template"))
    _set_template_generation(new, template_generation(old) + int(is_template_changed))


def _prepare_status_update(new: Object, old: Object) -> None:
    """Keeps the spec and the template generation, in place."""
    status_subresource.keep_spec(new, old)
    _set_template_generation(new, template_generation(old))


def _to_storage(daemon_set: Object) -> Object:
    """Writes the template generation as a plain number, in place; without the annotation it is 0, as in Go.

    Raises DecodeError if it is no int64.
    """
    generation = ((daemon_set.get("metadata") or {}).get("annotations") or {}).get(GENERATION_ANNOTATION, "0")
    _set_template_generation(daemon_set, _parse_int64(generation))
    return daemon_set


def _parse_int64(number_text: str) -> int:
    """The number that Go's strconv.ParseInt reads. Raises DecodeError with Go's message."""
    problem = "invalid syntax"
    if _INTEGER.fullmatch(number_text):
        number = int(number_text)
        if numbers.INT64_MIN <= number <= numbers.INT64_MAX:
            return number
        problem = "value out of range"
    raise DecodeError(f"strconv.ParseInt: parsing {quoting.quoted(number_text)}: {problem}")


def _make_managed_form(daemon_set: Object) -> Callable[[Object], Object]:
    """The hook `seen_by_managers`: a function that restores the annotation of `daemon_set`, the sent object.

    Field managers then own the template generation that the client sent, not the one that the server set.
    """
    sent_generation = ((daemon_set.get("metadata") or {}).get("annotations") or {}).get(GENERATION_ANNOTATION)
    return partial(_with_sent_generation, sent_generation)


def _with_sent_generation(sent_generation: str | None, daemon_set: Object) -> Object:
    """The stored DaemonSet with the template generation as it was sent; None: the client sent none."""
    annotations = daemon_set["metadata"].get("annotations") or {}
    if sent_generation is None or sent_generation == annotations.get(GENERATION_ANNOTATION):
        return daemon_set
    return {
        **daemon_set,
        "metadata": {**daemon_set["metadata"], "annotations": {**annotations, GENERATION_ANNOTATION: sent_generation}},
    }


def template_generation(daemon_set: Object) -> int:
    """The template generation; 1 without a valid annotation."""
    generation = (daemon_set["metadata"].get("annotations") or {}).get(GENERATION_ANNOTATION, "")
    return int(generation) if generation.isascii() and generation.isdigit() else 1


def _set_template_generation(daemon_set: Object, generation: int) -> None:
    """Sets the annotation with the template generation, in place."""
    metadata = daemon_set.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), GENERATION_ANNOTATION: str(generation)}


def _cells(daemon_set: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: counts of pods, node selector, containers."""
    spec, status = daemon_set["spec"], daemon_set.get("status") or {}
    template_spec = (spec.get("template") or {}).get("spec") or {}
    count_fields = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    return [
        *(status.get(field, 0) for field in (*count_fields, "numberAvailable")),
        printing.labels(template_spec.get("nodeSelector")),
        *workload_spec.container_cells(daemon_set),
        label_selector.text(spec.get("selector")),
    ]


RESOURCE = Resource(
    group="apps",
    plural="daemonsets",
    kind="DaemonSet",
    versions=(Version("v1", "apps/v1.DaemonSet", default=set_defaults, to_storage=_to_storage),),
    hidden_annotations=frozenset({GENERATION_ANNOTATION}),
    short_names=("ds",),
    categories=("all",),
    has_status=True,
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=_prepare_status_update,
        validate=validate,
        validate_status=validate_status,
        has_generation=True,
        warnings=pod_warnings.of_template,
        seen_by_managers=_make_managed_form,
    ),
    printer=tables.named(
        "daemon set",
        Column("Desired", "integer", description="How many nodes should run its pod."),
        Column("Current", "integer", description="How many of them have one."),
        Column("Ready", "integer", description="How many have a ready one."),
        Column("Up-to-date", "integer", description="How many have one of the newest template."),
        Column("Available", "integer", description="How many have one that has been ready for long enough."),
        Column("Node Selector", description="Which nodes it is for."),
        tables.AGE,
        *workload_spec.CONTAINER_COLUMNS,
        workload_spec.selector_column("daemon set"),
        cells=_cells,
    ),
)
