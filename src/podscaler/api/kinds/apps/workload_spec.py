"""What the specs of Deployment, ReplicaSet, StatefulSet have in common: replicas, selector, template.

Called by the records of those kinds. A new kind with pods adds its own fields and calls these.

Source: golden captures of refused workloads; the API reference of apps/v1.
"""

from podscaler.api.kinds.pods import pod_template
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource import label_selector, semantics
from podscaler.api.resource.resources import Object

NOT_NEGATIVE = "must be greater than or equal to 0"


def counts(spec: Object, *names: str) -> list[FieldError]:
    """Faults of the named fields of `spec`, which count something and may not be negative."""
    return [
        invalid(f"spec.{name}", value, NOT_NEGATIVE)
        for name in names
        if isinstance(value := spec.get(name), int) and value < 0
    ]


def selector(spec: Object, kind: str) -> list[FieldError]:
    """Faults of `spec.selector`: it must be there, be right, and select something less than everything."""
    given = spec.get("selector")
    if given is None:
        return [required("spec.selector")]
    found = label_selector.faults(given, "spec.selector")
    if label_selector.is_empty(given):
        found.append(invalid("spec.selector", given, f"empty selector is invalid for {kind}"))
    return found


def selects(spec: Object) -> list[FieldError]:
    """The fault of a selector that cannot be used at all, whose template is then not looked at."""
    given = spec.get("selector")
    if given is None or not label_selector.faults(given, "spec.selector"):
        return []
    return [invalid("spec.selector", given, "invalid label selector")]


def template(spec: Object, *, old_spec: Object | None, kind: str) -> list[FieldError]:
    """Faults of `spec.template`: it must carry labels that the selector selects, and pods that never stop."""
    given = spec.get("template") or {}
    found = _selected(spec.get("selector"), given)
    found += pod_template.faults(given, "spec.template", old=(old_spec or {}).get("template"))
    found += endless(given, kind)
    return found


def _selected(wanted: Object | None, given: Object) -> list[FieldError]:
    """The fault of labels that the selector does not select; an empty one selects all, a missing one none."""
    if wanted is not None and label_selector.is_empty(wanted):
        return []
    return unselected(wanted, (given.get("metadata") or {}).get("labels") or {})


def unselected(wanted: Object | None, labels: Object) -> list[FieldError]:
    """The fault of a template's labels that `wanted` does not select."""
    if wanted is not None and label_selector.matches(wanted, labels):
        return []
    shown = dict(sorted(labels.items())) or None
    return [invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")]


def endless(given: Object, kind: str) -> list[FieldError]:
    """Faults of a template whose pods would end by themselves."""
    pod_spec = given.get("spec") or {}
    found = []
    policy = pod_spec.get("restartPolicy", "")
    if policy != "Always":
        found.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        found.append(forbidden("spec.template.spec.activeDeadlineSeconds", text))
    return found


def immutable(field: str, new: Object, old: Object) -> list[FieldError]:
    """The fault of `spec.<field>` when it is not what it was."""
    if semantics.same(new["spec"].get(field) or None, old["spec"].get(field) or None):
        return []
    return [invalid(f"spec.{field}", new["spec"].get(field), "field is immutable")]


def status_counts(status: Object, *names: str) -> list[FieldError]:
    """Faults of the named fields of `status`, which count something and may not be negative."""
    return [invalid(f"status.{name}", value, NOT_NEGATIVE) for name in names if (value := status.get(name) or 0) < 0]


def not_more(status: Object, small: str, large: str) -> list[FieldError]:
    """The fault of `status.<small>` when it is larger than `status.<large>`."""
    value = status.get(small) or 0
    if value <= (status.get(large) or 0):
        return []
    return [invalid(f"status.{small}", value, f"cannot be greater than status.{large}")]
