"""Validates Jobs.

Source: upstream's messages; the API reference of batch/v1.
"""

from podscaler.api.kinds.apps import workload_spec
from podscaler.api.kinds.pods import pod_validation
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required, too_long
from podscaler.api.resource import checks, go_struct, label_selector, references, semantics
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


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a Job to be stored."""
    spec = new["spec"]
    found = workload_spec.count_errors(spec, *_COUNTS)
    found += _index_errors(spec)
    found += _mode_errors(spec)
    found += _policy_errors(spec)
    old_template = old["spec"].get("template") if old else None
    found += pod_validation.validate_template(spec.get("template") or {}, "spec.template", old=old_template)
    path, pod_spec = "spec.template.spec.restartPolicy", (spec.get("template") or {}).get("spec") or {}
    policy = pod_spec.get("restartPolicy", "")
    if policy in ("", "Always"):
        found.append(required(path, 'valid values: "OnFailure", "Never"'))
    else:
        found += checks.one_of(policy, path, _ENDING)
    found += _selector_errors(spec)
    return found + (_change_errors(new, old) if old else _generated_errors(new))


def _mode_errors(spec: Object) -> list[FieldError]:
    mode, parallelism = spec.get("completionMode", ""), spec.get("parallelism") or 0
    if mode not in _MODES:
        return [not_supported("spec.completionMode", mode, _MODES)]
    if mode == "NonIndexed":
        text = "requires indexed completion mode"
        given = [name for name in ("backoffLimitPerIndex", "maxFailedIndexes") if spec.get(name) is not None]
        return [invalid(f"spec.{name}", spec[name], text) for name in given]
    if spec.get("completions") is None:
        return [required("spec.completions", "when completion mode is Indexed")]
    message = f"must be less than or equal to {_INDEXED_MAX} when completion mode is Indexed"
    return checks.holds(parallelism <= _INDEXED_MAX, "spec.parallelism", parallelism, message)


def _index_errors(spec: Object) -> list[FieldError]:
    failed, completions = spec.get("maxFailedIndexes"), spec.get("completions")
    if failed is None:
        return []
    found = []
    if spec.get("backoffLimitPerIndex") is None:
        found.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if completions is not None and failed > completions:
        found.append(invalid("spec.maxFailedIndexes", failed, "must be less than or equal to completions"))
    return found


def _policy_errors(spec: Object) -> list[FieldError]:
    manager, replacement = spec.get("managedBy"), spec.get("podReplacementPolicy")
    found = [] if manager is None else references.domain_path_errors(manager, "spec.managedBy")
    if manager is not None and len(manager.encode()) > _MANAGER_MAX_BYTES:
        found.append(too_long("spec.managedBy", _MANAGER_MAX_BYTES))
    return found + checks.optional_one_of(replacement, "spec.podReplacementPolicy", _REPLACEMENTS)


def _selector_errors(spec: Object) -> list[FieldError]:
    """The errors of the selector, and of labels that it does not select; a missing one selects none."""
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector"), *workload_spec.unselected_errors(None, workload_spec.template_labels(spec))]
    found = label_selector.validate(selector, "spec.selector")
    return found or workload_spec.unselected_errors(selector, workload_spec.template_labels(spec))


def _generated_errors(new: Object) -> list[FieldError]:
    """The errors of a new Job whose selector is not the generated one, without `manualSelector`."""
    spec = new["spec"]
    if spec.get("manualSelector"):
        return []
    labels = workload_spec.template_labels(spec)
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


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    found = [error for name in _FIXED for error in _fixed_errors(name, new, old)]
    template = new["spec"].get("template") or {}
    if not semantics.same(template, old["spec"].get("template") or {}):
        shown = go_struct.shown(template, "core/v1.PodTemplateSpec")
        found.append(invalid("spec.template", shown, checks.IMMUTABLE))
    return found + [error for name in _FIXED_AFTER_TEMPLATE for error in _fixed_errors(name, new, old)]


def _fixed_errors(name: str, new: Object, old: Object) -> list[FieldError]:
    """The error of a changed field; `completions` and `parallelism` of an indexed Job may change together."""
    spec = new["spec"]
    is_elastic = name == "completions" and spec.get("completionMode") == "Indexed"
    if is_elastic and spec.get("completions") is not None and spec.get("completions") == spec.get("parallelism"):
        return []
    return workload_spec.immutable_errors(name, new, old)
