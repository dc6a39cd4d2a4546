"""Resource definition of Job (batch/v1): defaults, the generated selector, validation, table.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. `job_policies` validates the policies; `cronjob` uses `set_defaults`
and `spec_errors` for its Job template. A new field needs regenerated type facts (CONTRIBUTING.md), its default and its
validation here; a new column, a cell in `_cells` at the same position.

Source: the API reference of batch/v1; kube-apiserver's validation messages.
"""

from typing import Any

from podscaler.api.kinds.apps import job_policies, workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_validation, pod_warnings
from podscaler.api.machinery import instants, printing
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.resource import checks, go_struct, label_selector, semantics, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version
from podscaler.base.clock import NANOSECONDS

_ORPHANING_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_END_CONDITIONS = ("Complete", "Failed")
_RUNNING_CONDITIONS = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
"""Types of conditions that the column STATUS shows while a Job has not ended; the first one that is true is shown."""
UID_LABEL = "batch.kubernetes.io/controller-uid"
_NAME_LABEL = "batch.kubernetes.io/job-name"
_DEFAULT_BACKOFF_LIMIT = 6
_UNLIMITED_BACKOFF = 2**31 - 1
"""The back-off limit of a Job whose indexes have limits of their own: the largest int32."""
_INDEX_LIMIT_FIELDS = ("backoffLimitPerIndex", "maxFailedIndexes")
_COUNT_FIELDS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_COMPLETION_MODES = ("NonIndexed", "Indexed")
_RESTART_POLICIES = ("OnFailure", "Never")
_INDEXED_PARALLELISM_MAX = 100_000
_IMMUTABLE_FIELDS = (
    "completions",
    "selector",
    "podFailurePolicy",
    "completionMode",
    "backoffLimitPerIndex",
    "managedBy",
)
_IMMUTABLE_REPORTED_LAST = ("successPolicy",)
"""Reported after the template, in kube-apiserver's order."""
_GO_TYPES = {"podFailurePolicy": "batch/v1.PodFailurePolicy", "successPolicy": "batch/v1.SuccessPolicy"}
_SCHEDULING_FIELDS = ("nodeSelector", "tolerations", "schedulingGates")
"""The fields of a pod that may change in the template of a suspended Job, besides its node affinity."""


def set_defaults(job: Object) -> None:
    """API defaults, in place: completions, parallelism, back-off limit, completion mode, policies, pod template."""
    spec = job.setdefault("spec", {})
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        has_index_limit = spec.get("backoffLimitPerIndex") is not None
        spec["backoffLimit"] = _UNLIMITED_BACKOFF if has_index_limit else _DEFAULT_BACKOFF_LIMIT
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    replaced_pods = "Failed" if spec.get("podFailurePolicy") is not None else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaced_pods)
    job_policies.set_defaults(spec)
    pod_defaults.set_template_defaults(spec)
    job.setdefault("status", {})


def _set_default_labels(job: Object) -> None:
    """Sets the labels of a Job that has none to those of its template, in place."""
    labels = (job["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not job.setdefault("metadata", {}).get("labels"):
        job["metadata"]["labels"] = {**labels}


def _prepare_create(job: Object) -> None:
    """Sets the status, the default labels, and the selector by uid, which `manualSelector` turns off; in place."""
    job["status"] = {}
    if not job["spec"].get("manualSelector"):
        _generate_selector(job["spec"], job["metadata"])
    _set_default_labels(job)


def _generate_selector(spec: Object, metadata: Object) -> None:
    """Makes the selector of a new Job select by its uid, and adds `own_labels` to its template, in place.

    Labels and selectors that the client sent stay: `_generated_selector_errors` reports them.
    """
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    for name, value in own_labels(metadata).items():
        labels.setdefault(name, value)
    match_labels = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    match_labels.setdefault(UID_LABEL, metadata["uid"])


def _prepare_update(new: Object, old: Object) -> None:
    """Keeps the status, and sets missing labels, in place."""
    status_subresource.keep_status(new, old)
    _set_default_labels(new)


def _prepare_status_update(new: Object, old: Object) -> None:
    """Keeps the spec, and sets missing labels, in place."""
    status_subresource.keep_spec(new, old)
    _set_default_labels(new)


def own_labels(metadata: Object) -> dict[str, str]:
    """The labels of the pods of a Job, by which its selector finds them; `metadata` is that of the Job."""
    uid, name = metadata["uid"], metadata.get("name", "")
    return {UID_LABEL: uid, "controller-uid": uid, _NAME_LABEL: name, "job-name": name}


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a Job to be stored."""
    spec = new["spec"]
    errors = spec_errors(spec, old["spec"].get("template") if old else None)
    errors += _selector_errors(spec)
    return errors + (_change_errors(new, old) if old else _generated_selector_errors(new))


def spec_errors(spec: Object, old_template: Object | None) -> list[FieldError]:
    """The field errors, below `spec`, of the spec of a Job or of a CronJob's template, without those of the selector.

    Args:
        spec: with all defaults.
        old_template: the stored pod template; None for a new one.
    """
    errors = workload_spec.count_errors(spec, *_COUNT_FIELDS, *_INDEX_LIMIT_FIELDS)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    errors += job_policies.managed_by_errors(spec.get("managedBy"))
    errors += _mode_errors(spec)
    errors += job_policies.policy_errors(spec)
    errors += pod_validation.validate_template(spec.get("template") or {}, "spec.template", old=old_template)
    return errors + _restart_errors(spec)


def _restart_errors(spec: Object) -> list[FieldError]:
    """Field errors of the restart policy of pods, which must be OnFailure or Never."""
    path, pod_spec = "spec.template.spec.restartPolicy", (spec.get("template") or {}).get("spec") or {}
    policy = pod_spec.get("restartPolicy", "")
    errors = []
    if policy in ("", "Always"):
        errors.append(required(path, 'valid values: "OnFailure", "Never"'))
    elif spec.get("podFailurePolicy") is not None and policy == "OnFailure":
        errors.append(invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified'))
    else:
        errors += checks.one_of(policy, path, _RESTART_POLICIES)
    return errors


def _mode_errors(spec: Object) -> list[FieldError]:
    """Field errors of the completion mode: limits per index need the mode Indexed, which needs completions."""
    mode, parallelism = spec.get("completionMode", ""), spec.get("parallelism") or 0
    if mode not in _COMPLETION_MODES:
        return [not_supported("spec.completionMode", mode, _COMPLETION_MODES)]
    if mode == "NonIndexed":
        detail = "requires indexed completion mode"
        set_fields = [field for field in _INDEX_LIMIT_FIELDS if spec.get(field) is not None]
        return [invalid(f"spec.{field}", spec[field], detail) for field in set_fields]
    if spec.get("completions") is None:
        return [required("spec.completions", "when completion mode is Indexed")]
    message = f"must be less than or equal to {_INDEXED_PARALLELISM_MAX} when completion mode is Indexed"
    errors = checks.holds(parallelism <= _INDEXED_PARALLELISM_MAX, "spec.parallelism", parallelism, message)
    return errors + job_policies.index_limit_errors(spec)


def _selector_errors(spec: Object) -> list[FieldError]:
    """The errors of the selector, and of template labels that it does not match; a missing selector matches nothing."""
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector"), *workload_spec.unselected_errors(None, workload_spec.template_labels(spec))]
    errors = label_selector.validate(selector, "spec.selector")
    return errors or workload_spec.unselected_errors(selector, workload_spec.template_labels(spec))


def _generated_selector_errors(new: Object) -> list[FieldError]:
    """Field errors of a new Job without `manualSelector` whose selector or labels are not the generated ones."""
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
        shown_selector = {key: selector[key] for key in ("matchLabels", "matchExpressions") if selector.get(key)}
        errors.append(invalid("spec.selector", shown_selector, "`selector` not auto-generated"))
    return errors


def _change_errors(new: Object, old: Object) -> list[FieldError]:
    """Field errors of an update: immutable fields and the template, in the order of kube-apiserver."""
    errors = [error for field in _IMMUTABLE_FIELDS for error in _immutable_errors(field, new, old)]
    errors += _template_change_errors(new["spec"].get("template") or {}, old)
    return errors + [error for field in _IMMUTABLE_REPORTED_LAST for error in _immutable_errors(field, new, old)]


def _template_change_errors(template: Object, old: Object) -> list[FieldError]:
    """The error of a changed template.

    Labels, annotations, scheduling and resources may change in a suspended Job that has no pods, and either has never
    started or has the condition Suspended.
    """
    old_template, status = old["spec"].get("template") or {}, old.get("status") or {}
    conditions = status.get("conditions") or []
    is_suspended = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True" for condition in conditions
    )
    is_stopped = not status.get("active") and (is_suspended or not status.get("startTime"))
    is_changeable = old["spec"].get("suspend") and is_stopped
    if not is_changeable:
        if semantics.same(template, old_template):
            return []
        printed = go_struct.printed(template, "core/v1.PodTemplateSpec")
        return [invalid("spec.template", printed, checks.IMMUTABLE)]
    pod_spec = template.get("spec") or {}
    if semantics.same(pod_spec, _with_changeable_fields(old_template.get("spec") or {}, pod_spec)):
        return []
    return [invalid("spec.template.spec", go_struct.printed(pod_spec, "core/v1.PodSpec"), checks.IMMUTABLE)]


def _with_changeable_fields(old_pod_spec: Object, new_pod_spec: Object) -> Object:
    """The old spec of a pod with the new values of the fields that may change in a suspended Job; null means unset."""
    pod_spec = {**old_pod_spec, **{name: new_pod_spec.get(name) for name in _SCHEDULING_FIELDS}}
    new_node_affinity = (new_pod_spec.get("affinity") or {}).get("nodeAffinity")
    merged_affinity = {**(old_pod_spec.get("affinity") or {}), "nodeAffinity": new_node_affinity}
    affinity = {name: value for name, value in merged_affinity.items() if value is not None}
    # with no terms left: empty if the new spec has an affinity, else unset
    pod_spec["affinity"] = affinity if affinity or new_pod_spec.get("affinity") is not None else None
    for field in ("containers", "initContainers"):
        old_containers, new_containers = old_pod_spec.get(field) or [], new_pod_spec.get(field) or []
        old_names = [container.get("name") for container in old_containers]
        if old_names == [container.get("name") for container in new_containers]:  # others stay, and so differ
            pod_spec[field] = [
                {**old_container, "resources": new_container.get("resources")}
                for old_container, new_container in zip(old_containers, new_containers, strict=True)
            ]
    return {name: value for name, value in pod_spec.items() if value is not None}


def _immutable_errors(field: str, new: Object, old: Object) -> list[FieldError]:
    """The error of a changed field; `completions` and `parallelism` of an indexed Job may change together."""
    spec = new["spec"]
    is_elastic = field == "completions" and spec.get("completionMode") == "Indexed"
    if is_elastic and spec.get("completions") is not None and spec.get("completions") == spec.get("parallelism"):
        return []
    errors = workload_spec.immutable_errors(field, new, old)
    if errors and field in _GO_TYPES and spec.get(field) is not None:
        return [invalid(f"spec.{field}", go_struct.printed(spec[field], _GO_TYPES[field]), checks.IMMUTABLE)]
    return errors


def _status_text(job: Object) -> str:
    """The column STATUS: the condition that ended the Job, else Terminating, one of _RUNNING_CONDITIONS or Running."""
    conditions = (job.get("status") or {}).get("conditions") or []
    true_types = {condition.get("type") for condition in conditions if condition.get("status") == "True"}
    for condition_type in _END_CONDITIONS:
        if condition_type in true_types:
            return condition_type
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((condition_type for condition_type in _RUNNING_CONDITIONS if condition_type in true_types), "Running")


def _completions_text(job: Object) -> str:
    """The column COMPLETIONS: `2/3`; without completions `2/1`, or `2/1 of 4` with a parallelism of 4."""
    spec, succeeded = job["spec"], (job.get("status") or {}).get("succeeded", 0)
    completions, parallel = spec.get("completions"), spec.get("parallelism") or 0
    if completions is not None:
        return f"{succeeded}/{completions}"
    return f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"


def _duration_text(job: Object, now_ns: int) -> str:
    """The column DURATION: the time from the start to the end, or to now; empty before the start."""
    status = job.get("status") or {}
    if not status.get("startTime"):
        return ""
    end_ns = instants.parse(status["completionTime"]) if status.get("completionTime") else now_ns
    return printing.elapsed((end_ns - instants.parse(status["startTime"])) // NANOSECONDS)


def _cells(job: Object, now_ns: int) -> list[Any]:
    """The cells of a table row: status, completions, duration, containers."""
    spec = job["spec"]
    return [
        _status_text(job),
        _completions_text(job),
        _duration_text(job, now_ns),
        *workload_spec.container_cells(job),
        label_selector.text(spec.get("selector")),
    ]


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
