"""Resource definition of CronJob (batch/v1): defaults, validation, table.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. The Job template is validated like the spec of a Job with the defaults
of Jobs; the stored CronJob does not get these defaults. A new field needs regenerated type facts (CONTRIBUTING.md), its
default and its validation here; a new column, a cell in `_cells` at the same position.

Source: the API reference of batch/v1; kube-apiserver's validation messages.
"""

import copy
from dataclasses import replace
from typing import Any

from podscaler.api.kinds.apps import job, job_policies, workload_spec
from podscaler.api.kinds.apps.cron_schedule import CronSchedule, ScheduleError, parse_zone
from podscaler.api.kinds.pods import pod_defaults
from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, invalid, not_supported, required
from podscaler.api.resource import checks, label_selector, status_subresource, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_CONCURRENCY_POLICIES = ("Allow", "Forbid", "Replace")
_NAME_MAX_CHARACTERS = 52
"""Names of Jobs have at most 63, and the name of a Job ends in the time of its run."""
_HISTORY_LIMITS = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
_ZONE_PATH = "spec.timeZone"


def set_defaults(cron_job: Object) -> None:
    """API defaults, in place: concurrency policy, history limits, Job template."""
    spec = cron_job.setdefault("spec", {})
    defaults = {"concurrencyPolicy": "Allow", "suspend": False}
    defaults |= {"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}
    for field, default in defaults.items():
        if spec.get(field) in (None, ""):  # an empty concurrencyPolicy is an unset one
            spec[field] = default
    job_spec = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    job_policies.set_defaults(job_spec)
    pod_defaults.set_template_defaults(job_spec)
    cron_job.setdefault("status", {})


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a CronJob to be stored."""
    spec, old_spec = new["spec"], old["spec"] if old else None
    errors = _schedule_errors(spec, old_spec)
    errors += checks.not_negative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if old_spec is None or old_spec.get("timeZone") != spec.get("timeZone"):
        errors += _zone_errors(spec.get("timeZone"))
    policy = spec.get("concurrencyPolicy", "")
    errors += checks.required_one_of(policy, "spec.concurrencyPolicy", _CONCURRENCY_POLICIES)
    errors += _template_errors(spec, old_spec)
    for field in _HISTORY_LIMITS:
        errors += checks.not_negative(spec.get(field), f"spec.{field}")
    name = new["metadata"]["name"]
    if old is None and len(name) > _NAME_MAX_CHARACTERS:
        errors.append(invalid("metadata.name", name, f"must be no more than {_NAME_MAX_CHARACTERS} characters"))
    return errors


def _schedule_errors(spec: Object, old_spec: Object | None) -> list[FieldError]:
    """Errors of the schedule; an update may keep a time zone in it (`TZ=...`), and such a schedule is not parsed."""
    path, schedule = "spec.schedule", spec.get("schedule", "")
    if not schedule:
        return [required(path)]
    if "TZ" in schedule:
        if old_spec is not None and "TZ" in old_spec.get("schedule", ""):
            return []
        return [invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")]
    try:
        CronSchedule(schedule)
    except ScheduleError as error:
        return [invalid(path, schedule, str(error))]
    return []


def _zone_errors(zone: str | None) -> list[FieldError]:
    """Errors of the time zone: a name of the IANA database, and not `local`."""
    if zone is None:
        return []
    if not zone:
        return [invalid(_ZONE_PATH, zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        message = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid(_ZONE_PATH, zone, message)]
    try:
        parse_zone(zone)
    except ScheduleError as error:
        return [invalid(_ZONE_PATH, zone, str(error))]
    return []


def _template_errors(spec: Object, old_spec: Object | None) -> list[FieldError]:
    """Field errors of the Job template, which must not have a selector: each Job gets a generated one."""
    path = "spec.jobTemplate.spec"
    job_object = {"spec": copy.deepcopy((spec.get("jobTemplate") or {}).get("spec") or {})}
    job.set_defaults(job_object)
    old_pod_template = (((old_spec or {}).get("jobTemplate") or {}).get("spec") or {}).get("template")
    errors = [  # with the path of the template before the path in a Job, which starts with `spec`
        replace(error, field="spec.jobTemplate." + error.field)
        for error in job.spec_errors(job_object["spec"], old_pod_template)
    ]
    if job_object["spec"].get("selector") is not None:
        selector = job_object["spec"]["selector"]
        errors.append(invalid(f"{path}.selector", selector, "`selector` will be auto-generated"))
    if job_object["spec"]["manualSelector"]:
        errors.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    return errors


def _cells(cron_job: Object, now_ns: int) -> list[Any]:
    """The cells of a table row, in the order of the columns in RESOURCE."""
    spec, status = cron_job["spec"], cron_job.get("status") or {}
    last_schedule_time, job_spec = status.get("lastScheduleTime"), (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        spec.get("schedule", ""),
        spec.get("timeZone") or printing.NONE,
        str(spec["suspend"]).capitalize(),
        len(status.get("active") or []),
        printing.age(last_schedule_time, now_ns) if last_schedule_time else printing.NONE,
        *workload_spec.container_cells({"spec": job_spec}),
        label_selector.text(job_spec.get("selector")),
    ]


RESOURCE = Resource(
    group="batch",
    plural="cronjobs",
    kind="CronJob",
    versions=(Version("v1", "batch/v1.CronJob", default=set_defaults),),
    short_names=("cj",),
    categories=("all",),
    has_status=True,
    strategy=Strategy(
        prepare_create=status_subresource.start_with({}),
        prepare_update=status_subresource.keep_status,
        prepare_status_update=status_subresource.keep_spec,
        validate=validate,
        has_generation=True,
    ),
    printer=tables.named(
        "cron job",
        Column("Schedule", description="When Jobs are created."),
        Column("Timezone", description="In which time zone the schedule is meant."),
        Column("Suspend", "boolean", description="Whether no Jobs are created for now."),
        Column("Active", "integer", description="How many of its Jobs run."),
        Column("Last Schedule", description="How long ago a Job was last created."),
        tables.AGE,
        *workload_spec.CONTAINER_COLUMNS,
        workload_spec.selector_column("Jobs"),
        cells=_cells,
    ),
)
