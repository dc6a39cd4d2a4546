"""Validation and table columns that all kinds with a pod template share: replicas, selector, template, status.

Called by the records of those kinds in this package, and of PodDisruptionBudget. A new check of a field that several of
these kinds have goes here; one of a single kind, into its module. `spec`, `status` and `template` arguments are those
parts of the object as JSON objects. Field errors have the paths that all these kinds share: `spec.selector`,
`spec.template`, ...

Source: responses of kube-apiserver to rejected workloads (tests/conformance/golden); the API reference of apps/v1.
"""

from podscaler.api.kinds.pods import pod_validation
from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required
from podscaler.api.resource import checks, label_selector, semantics
from podscaler.api.resource.resources import Column, Object


def count_errors(spec: Object, *fields: str) -> list[FieldError]:
    """The errors of the named fields of `spec` that are below zero."""
    return [error for field in fields for error in checks.not_negative(spec.get(field), f"spec.{field}")]


def selector_errors(spec: Object, kind: str) -> list[FieldError]:
    """The errors of `spec.selector`, which must be valid and not empty; `kind` is the name of the kind in a message."""
    selector = spec.get("selector")
    malformed_errors = [] if selector is None else label_selector.validate(selector, "spec.selector")
    return malformed_errors + _empty_selector_errors(selector, kind)


def _empty_selector_errors(selector: Object | None, kind: str) -> list[FieldError]:
    """The error of a missing selector (None), or of one that selects everything."""
    if selector is None:
        return [required("spec.selector")]
    message = f"empty selector is invalid for {kind}"
    return [invalid("spec.selector", selector, message)] if label_selector.is_empty(selector) else []


def selector_and_template_errors(spec: Object, old_spec: Object | None) -> list[FieldError]:
    """The errors of selector and template of a Deployment or ReplicaSet.

    With an invalid selector the template is not validated. The messages name the same kinds for both workloads, as
    those of kube-apiserver do.
    """
    selector = spec.get("selector")
    malformed_errors = label_selector.validate(selector, "spec.selector") if selector else []
    errors = malformed_errors + _empty_selector_errors(selector, "deployment")
    if malformed_errors:
        return [*errors, invalid("spec.selector", selector, "invalid label selector")]
    return errors + template_errors(spec, old_spec=old_spec, kind="ReplicaSet")


def template_errors(spec: Object, *, old_spec: Object | None, kind: str) -> list[FieldError]:
    """The errors of `spec.template`: the selector must select its labels, and its pods must be restarted always.

    Args:
        spec: the spec of the workload.
        old_spec: the stored spec; None for a new object.
        kind: the name of the kind in a message.
    """
    selector, template = spec.get("selector"), spec.get("template") or {}
    selects_all = selector is not None and label_selector.is_empty(selector)
    errors = [] if selects_all else unselected_errors(selector, template_labels(spec))
    errors += pod_validation.validate_template(template, "spec.template", old=(old_spec or {}).get("template"))
    return errors + restart_errors(template, kind)


def template_labels(spec: Object) -> Object:
    """The labels of `spec.template`."""
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}


def unselected_errors(selector: Object | None, labels: Object) -> list[FieldError]:
    """The error of a template whose labels the selector does not select; None as selector selects nothing."""
    sorted_labels, path = dict(sorted(labels.items())) or None, "spec.template.metadata.labels"
    is_selected = selector is not None and label_selector.matches(selector, labels)
    return checks.holds(is_selected, path, sorted_labels, "`selector` does not match template `labels`")


def restart_errors(template: Object, kind: str) -> list[FieldError]:
    """The errors of a template whose pods would end by themselves; `kind` is the name of the kind in a message."""
    pod_spec, path = template.get("spec") or {}, "spec.template.spec"
    errors = checks.one_of(pod_spec.get("restartPolicy", ""), f"{path}.restartPolicy", ("Always",))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        message = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(forbidden(f"{path}.activeDeadlineSeconds", message))
    return errors


def immutable_errors(field: str, new: Object, old: Object) -> list[FieldError]:
    """The error of a changed `spec.<field>`; an empty value and a missing one are the same."""
    new_value, old_value = new["spec"].get(field), old["spec"].get(field)
    is_same = semantics.same(new_value or None, old_value or None)
    return checks.holds(is_same, f"spec.{field}", new_value, checks.IMMUTABLE)


def status_count_errors(status: Object, *fields: str) -> list[FieldError]:
    """The errors of the named fields of `status` that are below zero."""
    return [error for field in fields for error in checks.not_negative(status.get(field), f"status.{field}")]


def replica_count_errors(status: Object, *limited_counts: str) -> list[FieldError]:
    """The errors of the named counts that exceed `replicas`, and of available replicas that are not ready."""
    bounded_fields = [*((count, "replicas") for count in limited_counts), ("availableReplicas", "readyReplicas")]
    errors = []
    for field, upper_field in bounded_fields:
        count, upper_bound = status.get(field) or 0, status.get(upper_field) or 0
        errors += checks.holds(
            count <= upper_bound, f"status.{field}", count, f"cannot be greater than status.{upper_field}"
        )
    return errors


CONTAINER_COLUMNS = (
    Column("Containers", description="Names of the template's containers.", priority=1),
    Column("Images", description="Images of the template's containers.", priority=1),
)


def selector_column(kind: str) -> Column:
    """The column of `label_selector.text` of the selector; `kind` is named in its description."""
    return Column("Selector", description=f"Which pods belong to the {kind}.", priority=1)


def container_cells(workload: Object) -> tuple[str, str]:
    """The cells of CONTAINER_COLUMNS."""
    return printing.containers((workload["spec"].get("template") or {}).get("spec") or {})
