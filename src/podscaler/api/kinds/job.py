"""The record of Job (batch/v1): kept, defaulted and checked; nothing here runs one.

Source: the API reference of batch/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api import instants, printing
from podscaler.api.field import FieldError, invalid, not_supported, required
from podscaler.api.kinds import label_selector, pod_defaults, pod_template, status_subresource, workload_spec
from podscaler.api.resources import Column, Object, Printer, Resource, Strategy, Version

_UID_LABEL = "batch.kubernetes.io/controller-uid"
_NAME_LABEL = "batch.kubernetes.io/job-name"
_OLD_LABELS = {_UID_LABEL: "controller-uid", _NAME_LABEL: "job-name"}
_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_MODES = ("Indexed", "NonIndexed")
_SHOWN_CONDITIONS = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")
_NS = 1_000_000_000


def fill(job: Object) -> None:
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
    pod_defaults.fill_template(spec)
    _fill_labels(job)
    job.setdefault("status", {})


def _fill_labels(job: Object) -> None:
    """A Job without labels has those of its pods."""
    labels = (job["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not job.setdefault("metadata", {}).get("labels"):
        job["metadata"]["labels"] = {**labels}


def _prepare_create(job: Object) -> None:
    """A new Job selects its own pods: by its uid, unless it says that it brings a selector."""
    job["status"] = {}
    spec, metadata = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    own = {_UID_LABEL: metadata["uid"], _NAME_LABEL: metadata.get("name", "")}
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    for name, value in own.items():
        labels.setdefault(name, value)
        labels.setdefault(_OLD_LABELS[name], value)
    spec.setdefault("selector", {}).setdefault("matchLabels", {})[_UID_LABEL] = metadata["uid"]
    _fill_labels(job)


def faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a Job to be stored."""
    spec = new["spec"]
    found = workload_spec.counts(spec, *_COUNTS)
    found += _selector_faults(spec)
    mode = spec.get("completionMode", "")
    if mode not in _MODES:
        found.append(not_supported("spec.completionMode", mode, _MODES))
    elif mode == "Indexed" and spec.get("completions") is None:
        found.append(required("spec.completions", "when completion mode is Indexed"))
    old_template = old["spec"].get("template") if old else None
    found += pod_template.faults(spec.get("template") or {}, "spec.template", old=old_template)
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if policy not in ("OnFailure", "Never"):
        found.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    for name in ("completions", "selector", "template", "completionMode") if old else ():
        found += workload_spec.immutable(name, new, old or {})
    return found


def _selector_faults(spec: Object) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if label_selector.matches(selector, labels):
        return label_selector.faults(selector, "spec.selector")
    return [invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")]


def _status_text(job: Object) -> str:
    conditions = (job.get("status") or {}).get("conditions") or []
    true = {each.get("type") for each in conditions if each.get("status") == "True"}
    for name in _SHOWN_CONDITIONS[:2]:
        if name in true:
            return name
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((name for name in _SHOWN_CONDITIONS if name in true), "Running")


def _completions(job: Object) -> str:
    spec, done = job["spec"], (job.get("status") or {}).get("succeeded", 0)
    wanted, parallel = spec.get("completions"), spec.get("parallelism") or 0
    if wanted is not None:
        return f"{done}/{wanted}"
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(job: Object, now_ns: int) -> str:
    status = job.get("status") or {}
    if not status.get("startTime"):
        return ""
    end_ns = instants.parse(status["completionTime"]) if status.get("completionTime") else now_ns
    return printing.elapsed((end_ns - instants.parse(status["startTime"])) // _NS)


def _row(job: Object, now_ns: int) -> list[Any]:
    spec = job["spec"]
    names, images = printing.containers((spec.get("template") or {}).get("spec") or {})
    return [
        job["metadata"].get("name", ""),
        _status_text(job),
        _completions(job),
        _duration(job, now_ns),
        printing.created_age(job, now_ns),
        names,
        images,
        label_selector.text(spec.get("selector")),
    ]


RESOURCE = Resource(
    group="batch",
    plural="jobs",
    singular="job",
    kind="Job",
    versions=(Version("v1", "batch/v1.Job", default=fill),),
    storage_version="v1",
    categories=("all",),
    has_status=True,
    fields=lambda job: {"status.successful": str((job.get("status") or {}).get("succeeded", 0))},
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=faults,
        has_generation=True,
        orphans_by_default=True,
    ),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the job, unique within its namespace."),
            Column("Status", description="Whether the job is over, and how it ended."),
            Column("Completions", description="How many pods succeeded, of those that should."),
            Column("Duration", description="From start to end, or until now."),
            Column("Age", description="Time since the job was created."),
            Column("Containers", description="Names of the template's containers.", priority=1),
            Column("Images", description="Images of the template's containers.", priority=1),
            Column("Selector", description="Which pods belong to the job.", priority=1),
        ),
        row=_row,
    ),
)
