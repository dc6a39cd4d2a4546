"""Resource definition of Job (batch/v1): defaults, the generated selector, validation, table.

`api.kinds.catalog` lists it for the API server. Source: the API reference of batch/v1;
kube-apiserver's validation messages.
"""

from typing import Any

from podscaler.api.kinds.apps import job_policies, workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_validation, pod_warnings
from podscaler.api.machinery import instants, printing
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.resource import checks, go_struct, label_selector, semantics, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_ORPHANING_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_SHOWN_CONDITIONS = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
_SECOND_NS = 1_000_000_000
UID_LABEL = "batch.kubernetes.io/controller-uid"
_NAME_LABEL = "batch.kubernetes.io/job-name"
_INDEX_COUNTS = ("backoffLimitPerIndex", "maxFailedIndexes")
_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_MODES = ("NonIndexed", "Indexed")
_RESTART_POLICIES = ("OnFailure", "Never")
_INDEXED_MAX = 100_000
_IMMUTABLE = ("completions", "selector", "podFailurePolicy", "completionMode", "backoffLimitPerIndex", "managedBy")
_IMMUTABLE_AFTER_TEMPLATE = ("successPolicy",)
_STRUCTS = {"podFailurePolicy": "batch/v1.PodFailurePolicy", "successPolicy": "batch/v1.SuccessPolicy"}
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")
"""The fields of a pod that may change in the template of a suspended Job, besides its node affinity."""


def set_defaults(job: Object) -> None:
    """API defaults, in place."""
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    replaced = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaced)
    job_policies.set_defaults(spec)
    pod_defaults.set_template_defaults(spec)
    job.setdefault("status", {})


def _set_labels_defaults(job: Object) -> None:
    """Copies the labels of the template to a Job without labels."""
    labels = (job["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not job.setdefault("metadata", {}).get("labels"):
        job["metadata"]["labels"] = {**labels}


def _prepare_create(job: Object) -> None:
    """A new Job gets a selector by its uid, unless it has one of its own (`manualSelector`)."""
    job["status"] = {}
    if not job["spec"].get("manualSelector"):
        _generate_selector(job["spec"], job["metadata"])
    _set_labels_defaults(job)


def _generate_selector(spec: Object, metadata: Object) -> None:
    """Select the pods of a new Job by its uid, and label its template accordingly."""
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    for name, value in own_labels(metadata).items():
        labels.setdefault(name, value)
    selected = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selected.setdefault(UID_LABEL, metadata["uid"])


def _prepare_update(new: Object, old: Object) -> None:
    status_subresource.keep_status(new, old)
    _set_labels_defaults(new)


def _prepare_status_update(new: Object, old: Object) -> None:
    status_subresource.keep_spec(new, old)
    _set_labels_defaults(new)


def _status_text(job: Object) -> str:
    """The column STATUS: the condition that ended the Job, else whether it terminates, is suspended or runs."""
    conditions = (job.get("status") or {}).get("conditions") or []
    true = {condition.get("type") for condition in conditions if condition.get("status") == "True"}
    for name in _SHOWN_CONDITIONS[:2]:
        if name in true:
            return name
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((name for name in _SHOWN_CONDITIONS if name in true), "Running")


def _completions(job: Object) -> str:
    spec, succeeded = job["spec"], (job.get("status") or {}).get("succeeded", 0)
    completions, parallel = spec.get("completions"), spec.get("parallelism") or 0
    if completions is not None:
        return f"{succeeded}/{completions}"
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _duration(job: Object, now_ns: int) -> str:
    status = job.get("status") or {}
    if not status.get("startTime"):
        return ""
    end_ns = instants.parse(status["completionTime"]) if status.get("completionTime") else now_ns
    return printing.elapsed((end_ns - instants.parse(status["startTime"])) // _SECOND_NS)


def _cells(job: Object, now_ns: int) -> list[Any]:
    """The cells of a table row: status, completions, duration, containers."""
    spec = job["spec"]
    return [
        _status_text(job),
        _completions(job),
        _duration(job, now_ns),
        *workload_spec.container_cells(job),
        label_selector.text(spec.get("selector")),
    ]


def own_labels(metadata: Object) -> dict[str, str]:
    """The labels by which the pods of a Job are its own, from its metadata."""
    uid, name = metadata["uid"], metadata.get("name", "")
    return {UID_LABEL: uid, "controller-uid": uid, _NAME_LABEL: name, "job-name": name}


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a Job to be stored."""
    spec = new["spec"]
    errors = spec_errors(spec, old["spec"].get("template") if old else None)
    errors += _selector_errors(spec)
    return errors + (_change_errors(new, old) if old else _generated_errors(new))


def spec_errors(spec: Object, old_template: Object | None) -> list[FieldError]:
    """The field errors, below `spec`, of the spec of a Job or of a CronJob's template, without those of the selector.

    Args:
        spec: with all defaults.
        old_template: the stored pod template; None for a new one.
    """
    errors = workload_spec.count_errors(spec, *_COUNTS, *_INDEX_COUNTS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    errors += job_policies.manager_errors(spec.get("managedBy"))
    errors += _mode_errors(spec)
    errors += job_policies.policy_errors(spec)
    errors += pod_validation.validate_template(spec.get("template") or {}, "spec.template", old=old_template)
    path, pod_spec = "spec.template.spec.restartPolicy", (spec.get("template") or {}).get("spec") or {}
    policy = pod_spec.get("restartPolicy", "")
    if policy in ("", "Always"):
        errors.append(required(path, 'valid values: "OnFailure", "Never"'))
    elif spec.get("podFailurePolicy") is not None and policy == "OnFailure":
        errors.append(invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified'))
    else:
        errors += checks.one_of(policy, path, _RESTART_POLICIES)
    return errors


def _mode_errors(spec: Object) -> list[FieldError]:
    """Errors of the completion mode: counts of indexes need `Indexed`, which needs completions."""
    mode, parallelism = spec.get("completionMode", ""), spec.get("parallelism") or 0
    if mode not in _MODES:
        return [not_supported("spec.completionMode", mode, _MODES)]
    if mode == "NonIndexed":
        text = "requires indexed completion mode"
        set_names = [name for name in _INDEX_COUNTS if spec.get(name) is not None]
        return [invalid(f"spec.{name}", spec[name], text) for name in set_names]
    if spec.get("completions") is None:
        return [required("spec.completions", "when completion mode is Indexed")]
    message = f"must be less than or equal to {_INDEXED_MAX} when completion mode is Indexed"
    errors = checks.holds(parallelism <= _INDEXED_MAX, "spec.parallelism", parallelism, message)
    return errors + job_policies.index_limit_errors(spec)


def _selector_errors(spec: Object) -> list[FieldError]:
    """The errors of the selector, and of template labels that it does not match; a missing selector matches nothing."""
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector"), *workload_spec.unselected_errors(None, workload_spec.template_labels(spec))]
    errors = label_selector.validate(selector, "spec.selector")
    return errors or workload_spec.unselected_errors(selector, workload_spec.template_labels(spec))


def _generated_errors(new: Object) -> list[FieldError]:
    """The errors of a new Job whose selector is not the generated one, without `manualSelector`."""
    spec = new["spec"]
    if spec.get("manualSelector"):
        return []
    labels = workload_spec.template_labels(spec)
    errors = []
    for name, value in own_labels(new["metadata"]).items():
        if labels.get(name) != value:
            sorted_labels = dict(sorted(labels.items()))
            errors.append(invalid(f"spec.template.metadata.labels[{name}]", sorted_labels, f"must be '{value}'"))
    selector = spec.get("selector") or {}
    if selector != {"matchLabels": {UID_LABEL: new["metadata"]["uid"]}}:
        sorted_labels = {key: selector[key] for key in ("matchLabels", "matchExpressions") if selector.get(key)}
        errors.append(invalid("spec.selector", sorted_labels, "`selector` not auto-generated"))
    return errors


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    errors = [error for name in _IMMUTABLE for error in _fixed_errors(name, new, old)]
    errors += _template_change_errors(new["spec"].get("template") or {}, old)
    return errors + [error for name in _IMMUTABLE_AFTER_TEMPLATE for error in _fixed_errors(name, new, old)]


def _template_change_errors(template: Object, old: Object) -> list[FieldError]:
    """The error of a changed template.

    Labels, annotations, scheduling and resources may change in a suspended Job that has no pods, and either has never
    started or has the condition Suspended.
    """
    old_template, status = old["spec"].get("template") or {}, old.get("status") or {}
    conditions = status.get("conditions") or []
    is_stopped = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True" for condition in conditions
    )
    may_change = old["spec"].get("suspend") and (not status.get("startTime") or is_stopped) and not status.get("active")
    if not may_change:
        if semantics.same(template, old_template):
            return []
        printed = go_struct.printed(template, "core/v1.PodTemplateSpec")
        return [invalid("spec.template", printed, checks.IMMUTABLE)]
    pod = template.get("spec") or {}
    if semantics.same(pod, _with_changeable(old_template.get("spec") or {}, pod)):
        return []
    return [invalid("spec.template.spec", go_struct.printed(pod, "core/v1.PodSpec"), checks.IMMUTABLE)]


def _with_changeable(old: Object, new: Object) -> Object:
    """The old spec of a pod with the new values of what may change in a suspended Job."""
    result = {**old, **{name: new.get(name) for name in _SCHEDULING}}
    affinity = {**(old.get("affinity") or {}), "nodeAffinity": (new.get("affinity") or {}).get("nodeAffinity")}
    affinity = {name: value for name, value in affinity.items() if value is not None}
    result["affinity"] = affinity if affinity or new.get("affinity") is not None else None
    for group in ("containers", "initContainers"):
        before, after = old.get(group) or [], new.get(group) or []
        if [container.get("name") for container in before] == [container.get("name") for container in after]:
            pairs = zip(before, after, strict=True)
            result[group] = [{**container, "resources": other.get("resources")} for container, other in pairs]
    return {name: value for name, value in result.items() if value is not None}


def _fixed_errors(name: str, new: Object, old: Object) -> list[FieldError]:
    """The error of a changed field; `completions` and `parallelism` of an indexed Job may change together."""
    spec = new["spec"]
    is_elastic = name == "completions" and spec.get("completionMode") == "Indexed"
    if is_elastic and spec.get("completions") is not None and spec.get("completions") == spec.get("parallelism"):
        return []
    errors = workload_spec.immutable_errors(name, new, old)
    if errors and name in _STRUCTS and spec.get(name) is not None:
        return [invalid(f"spec.{name}", go_struct.printed(spec[name], _STRUCTS[name]), checks.IMMUTABLE)]
    return errors


RESOURCE = Resource(
    group="batch",
    plural="jobs",
    kind="Job",
    versions=(Version("v1", "batch/v1.Job", default=set_defaults),),
    categories=("all",),
    has_status=True,
    fields=lambda job: {"status.successful": str((job.get("status") or {}).get("succeeded", 0))},
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=_prepare_status_update,
        validate=validate,
        has_generation=True,
        warnings=pod_warnings.of_template,
        orphans_by_default=True,
        orphaning_warning=_ORPHANING_WARNING,
    ),
    printer=tables.named(
        "job",
        Column("Status", description="Whether the job is over, and how it ended."),
        Column("Completions", description="How many pods succeeded, of those that should."),
        Column("Duration", description="From start to end, or until now."),
        tables.AGE,
        *workload_spec.CONTAINER_COLUMNS,
        workload_spec.selector_column("job"),
        cells=_cells,
    ),
)
