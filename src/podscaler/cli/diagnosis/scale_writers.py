"""Finds who writes the replicas of an autoscaler's target, by the managedFields of the target; pure.

`podscaler.cli.diagnosis.examination` calls `check`; it and `podscaler.cli.diagnosis.timeline_entries` read
`field_writes`. Manifests that set the replicas and other autoscalers of the same target are lint rules (PSL005, PSL008,
PSL012); this check finds writers that nothing declares, such as `kubectl scale` or a pipeline. A further controller of
autoscalers is known by its field manager in `_is_autoscaler`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from podscaler.cli.diagnosis import events
from podscaler.cli.diagnosis.autoscaler_objects import JsonObject
from podscaler.cli.diagnosis.findings import Area, CheckResult, DoctorFinding, FindingLevel, section
from podscaler.controller.informers.other_controllers import BUILT_IN
from podscaler.controller.options import installation
from podscaler.explain import wording


class FieldWrite(NamedTuple):
    """One entry of managedFields: a manager and the latest instant at which it changed its fields.

    Attributes:
        subresource: `scale`, `status`; empty: the object itself.
        at_ns: since the epoch; None if the entry has no time.
        has_replicas: whether spec.replicas is among its fields.
    """

    manager: str
    operation: str
    subresource: str
    at_ns: int | None
    has_replicas: bool


def field_writes(obj: JsonObject) -> Iterator[FieldWrite]:
    """The entries of an object's managedFields."""
    for managed_field in obj.get("metadata", {}).get("managedFields") or ():
        spec = (managed_field.get("fieldsV1") or {}).get("f:spec")
        yield FieldWrite(
            manager=str(managed_field.get("manager", "")),
            operation=str(managed_field.get("operation", "")),
            subresource=str(managed_field.get("subresource", "")),
            at_ns=events.instant_ns(managed_field.get("time")),
            has_replicas=isinstance(spec, dict) and "f:replicas" in spec,
        )


def check(target: JsonObject | None, status_manager: str, last_scale_ns: int | None, now_ns: int) -> CheckResult:
    """The writers of the target's spec.replicas; one that wrote after the autoscaler did is a finding.

    Args:
        target: the scaled object; None if it is not known.
        status_manager: the manager that writes the autoscaler's status; empty: not known.
        last_scale_ns: the autoscaler's last rescale, since the epoch; None if there was none.
        now_ns: since the epoch.
    """
    writes = [field_write for field_write in field_writes(target or {}) if field_write.has_replicas]
    lines = [(write.manager, _write_text(write, now_ns)) for write in writes]
    findings = []
    for write in writes:
        if last_scale_ns is None or write.at_ns is None or _is_autoscaler(write.manager, status_manager):
            continue
        if write.at_ns > last_scale_ns:
            written_text, scaled_text = wording.age(write.at_ns, now_ns), wording.age(last_scale_ns, now_ns)
            findings.append(_finding(write.manager, written_text, scaled_text))
    return CheckResult(section("Writers of the replicas", lines or [("", "not known")]), tuple(findings))


def _is_autoscaler(manager: str, status_manager: str) -> bool:
    """Whether a field manager is a controller of autoscalers: the one that writes the status, or one of the known."""
    return manager in (BUILT_IN, status_manager) or manager.startswith(installation.MANAGER)


def _write_text(write: FieldWrite, now_ns: int) -> str:
    write_method = f"by {write.operation} of {write.subresource or 'the object'}"
    return write_method if write.at_ns is None else f"{write_method}, {wording.age(write.at_ns, now_ns)}"


def _finding(manager: str, written_text: str, scaled_text: str) -> DoctorFinding:
    """The finding for a manager that wrote the replicas after the autoscaler did; the texts are their ages."""
    return DoctorFinding(
        FindingLevel.WARNING,
        Area.WRITERS,
        f"{manager} wrote spec.replicas of the target {written_text}, "
        f"after the autoscaler's last rescale {scaled_text}",
        f"stop {manager} from writing spec.replicas: leave it out of its manifest, and do not scale by hand",
    )
