"""The record of Job (batch/v1), which is stored, defaulted and validated; no controller runs it.

Source: the API reference of batch/v1; upstream's validation messages.
"""

from typing import Any

from podscaler.api.kinds.apps import job_validation, workload_spec
from podscaler.api.kinds.pods import pod_defaults, pod_warnings
from podscaler.api.machinery import instants, printing
from podscaler.api.resource import label_selector, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_ORPHANING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
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
    job.setdefault("status", {})


def _fill_labels(job: Object) -> None:
    """Copies the labels of the template to a Job without labels."""
    labels = (job["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not job.setdefault("metadata", {}).get("labels"):
        job["metadata"]["labels"] = {**labels}


def _prepare_create(job: Object) -> None:
    """A new Job gets a selector by its uid, unless it has one of its own (`manualSelector`)."""
    job["status"] = {}
    if not job["spec"].get("manualSelector"):
        _generate_selector(job["spec"], job["metadata"])
    _fill_labels(job)


def _generate_selector(spec: Object, metadata: Object) -> None:
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    for name, value in job_validation.own_labels(metadata).items():
        labels.setdefault(name, value)
    selected = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selected.setdefault(job_validation.UID_LABEL, metadata["uid"])


def _prepare_update(new: Object, old: Object) -> None:
    status_subresource.keep_status(new, old)
    _fill_labels(new)


def _prepare_status_update(new: Object, old: Object) -> None:
    status_subresource.keep_spec(new, old)
    _fill_labels(new)


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


def _cells(job: Object, now_ns: int) -> list[Any]:
    spec = job["spec"]
    return [
        _status_text(job),
        _completions(job),
        _duration(job, now_ns),
        *workload_spec.container_cells(job),
        label_selector.text(spec.get("selector")),
    ]


RESOURCE = Resource(
    group="batch",
    plural="jobs",
    kind="Job",
    versions=(Version("v1", "batch/v1.Job", default=fill),),
    categories=("all",),
    has_status=True,
    fields=lambda job: {"status.successful": str((job.get("status") or {}).get("succeeded", 0))},
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=_prepare_status_update,
        validate=job_validation.validate,
        has_generation=True,
        warnings=pod_warnings.of_template,
        orphans_by_default=True,
        orphaning_warning=_ORPHANING,
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
