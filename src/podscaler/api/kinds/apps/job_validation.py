"""What is wrong with a Job.

Called by its record.

Source: upstream's messages; the API reference of batch/v1.
"""

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_template
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required, too_long
from podscaler.api.resource import domain_path, go_struct, label_selector, semantics
from podscaler.api.resource.resources import Object

UID_LABEL = "batch.kubernetes.io/controller-uid"
_NAME_LABEL = "batch.kubernetes.io/job-name"
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MODES = ("Indexed", "NonIndexed")
_ENDING = ("OnFailure", "Never")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MANAGER_MAX_BYTES = 63
_INDEXED_MAX = 100_000
_FIXED = ("completions", "selector", "podFailurePolicy", "completionMode", "backoffLimitPerIndex", "managedBy")
_FIXED_AFTER_TEMPLATE = ("successPolicy",)


def own_labels(metadata: Object) -> dict[str, str]:
    """The labels by which the pods of a Job are its own, from its metadata."""
    uid, name = metadata["uid"], metadata.get("name", "")
    return {UID_LABEL: uid, "controller-uid": uid, _NAME_LABEL: name, "job-name": name}


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a Job to be stored."""
    spec = new["spec"]
    found = workload_spec.counts(spec, *_COUNTS)
    found += _index_faults(spec)
    found += _mode_faults(spec)
    found += _policy_faults(spec)
    old_template = old["spec"].get("template") if old else None
    found += pod_template.faults(spec.get("template") or {}, "spec.template", old=old_template)
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy in ("", "Always"):
        found.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    elif policy not in _ENDING:
        found.append(not_supported("spec.template.spec.restartPolicy", policy, _ENDING))
    found += _selector_faults(spec)
    return found + (_change_faults(new, old) if old else _generated_faults(new))


def _mode_faults(spec: Object) -> list[FieldError]:
    mode, parallelism = spec.get("completionMode", ""), spec.get("parallelism") or 0
    if mode not in _MODES:
        return [not_supported("spec.completionMode", mode, _MODES)]
    if mode == "NonIndexed":
        text = "requires indexed completion mode"
        given = [name for name in ("backoffLimitPerIndex", "maxFailedIndexes") if spec.get(name) is not None]
        return [invalid(f"spec.{name}", spec[name], text) for name in given]
    if spec.get("completions") is None:
        return [required("spec.completions", "when completion mode is Indexed")]
    if parallelism > _INDEXED_MAX:
        text = f"must be less than or equal to {_INDEXED_MAX} when completion mode is Indexed"
        return [invalid("spec.parallelism", parallelism, text)]
    return []


def _index_faults(spec: Object) -> list[FieldError]:
    failed, completions = spec.get("maxFailedIndexes"), spec.get("completions")
    if failed is None:
        return []
    found = []
    if spec.get("backoffLimitPerIndex") is None:
        found.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if completions is not None and failed > completions:
        found.append(invalid("spec.maxFailedIndexes", failed, "must be less than or equal to completions"))
    return found


def _policy_faults(spec: Object) -> list[FieldError]:
    manager, replacement = spec.get("managedBy"), spec.get("podReplacementPolicy")
    found = [] if manager is None else domain_path.faults(manager, "spec.managedBy")
    if manager is not None and len(manager.encode()) > _MANAGER_MAX_BYTES:
        found.append(too_long("spec.managedBy", _MANAGER_MAX_BYTES))
    if replacement not in (None, *_REPLACEMENTS):
        found.append(not_supported("spec.podReplacementPolicy", replacement, _REPLACEMENTS))
    return found


def _selector_faults(spec: Object) -> list[FieldError]:
    """What is wrong with the selector; without one, no labels are right."""
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector"), *workload_spec.unselected(None, _labels(spec))]
    found = label_selector.faults(selector, "spec.selector")
    return found or workload_spec.unselected(selector, _labels(spec))


def _labels(spec: Object) -> Object:
    """The labels of the pods."""
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}


def _generated_faults(new: Object) -> list[FieldError]:
    """A new Job selects what it made up itself, unless it says that it does otherwise."""
    spec = new["spec"]
    if spec.get("manualSelector"):
        return []
    labels = _labels(spec)
    found = []
    for name, value in own_labels(new["metadata"]).items():
        if labels.get(name) != value:
            shown = dict(sorted(labels.items()))
            found.append(invalid(f"spec.template.metadata.labels[{name}]", shown, f"must be '{value}'"))
    selector = spec.get("selector") or {}
    if selector != {"matchLabels": {UID_LABEL: new["metadata"]["uid"]}}:
        shown = {key: selector[key] for key in ("matchLabels", "matchExpressions") if selector.get(key)}
        found.append(invalid("spec.selector", shown, "`selector` not auto-generated"))
    return found


def _change_faults(new: Object, old: Object) -> list[FieldError]:
    found = [fault for name in _FIXED for fault in _fixed_faults(name, new, old)]
    template = new["spec"].get("template") or {}
    if not semantics.same(template, old["spec"].get("template") or {}):
        shown = go_struct.shown(template, "core/v1.PodTemplateSpec")
        found.append(invalid("spec.template", shown, "field is immutable"))
    return found + [fault for name in _FIXED_AFTER_TEMPLATE for fault in _fixed_faults(name, new, old)]


def _fixed_faults(name: str, new: Object, old: Object) -> list[FieldError]:
    """The fault of a changed field; an indexed Job may become larger or smaller as a whole."""
    spec = new["spec"]
    is_elastic = name == "completions" and spec.get("completionMode") == "Indexed"
    if is_elastic and spec.get("completions") is not None and spec.get("completions") == spec.get("parallelism"):
        return []
    return workload_spec.immutable(name, new, old)
