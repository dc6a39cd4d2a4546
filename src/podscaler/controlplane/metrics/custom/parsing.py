"""Parses the entries of a ConfigMap, which define metrics, to series, in the format of docs/metrics.md. Pure.

`metrics.custom.config_maps` calls it for each entry of each new version of a ConfigMap. An entry is a value, a map of
fields, or a list of these; an invalid one does not affect the others. The entry

    queue_depth: {object: deployment/web, value: 5}

becomes one series of the metric `queue_depth`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from podscaler.api.machinery import names
from podscaler.api.text import yaml_text
from podscaler.api.text.json_text import DecodeError
from podscaler.controlplane.metrics.custom import fields
from podscaler.controlplane.metrics.custom.fields import EntryError, Fields
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.custom.schedule import Constant, Ramp, Schedule, Steps, ValueStep
from podscaler.controlplane.metrics.custom.series import Outside, PodSelection, Series, Subject

ENTRY_MAX_BYTES: Final = 8192
"""Parsing this much blocks the event loop for about 10 ms."""

# the fields of an entry; a new one is read in `_parse_series`, and described in docs/metrics.md
SUBJECT_FIELDS = ("pods", "object")
SCHEDULE_FIELDS = ("value", "steps", "ramp")
COMMON_FIELDS = ("metric", "labels", *SCHEDULE_FIELDS, "start", "sharedBy", "window")


@dataclass(frozen=True, slots=True)
class EntryContext:
    """The properties of a ConfigMap that its entries depend on.

    Attributes:
        api: whether its metrics are custom or external ones.
        namespace: the ConfigMap's namespace.
        start_ns: the ConfigMap's creation, nanoseconds since the epoch; times are relative to it unless the entry has
            a `start`.
        kinds: the kinds that may be described.
    """

    api: Literal["custom", "external"]
    namespace: str
    start_ns: int
    kinds: DescribableKinds


@dataclass(frozen=True, slots=True)
class EntryProblem:
    """An invalid entry.

    Attributes:
        path: the path of the entry: `data[http_requests]`, `data[queues][2]`.
        text: the reason.
    """

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ParsedEntry:
    """The series and problems of an entry; the result of a list may have both."""

    series: tuple[Series, ...] = ()
    problems: tuple[EntryProblem, ...] = ()


def parse_entry(key: str, entry_text: str, context: EntryContext) -> ParsedEntry:
    """Parse the entry `key` of a ConfigMap's data."""
    path = f"data[{key}]"
    try:
        definitions = _parse_definitions(entry_text)
    except EntryError as error:
        return ParsedEntry(problems=(EntryProblem(path, str(error)),))
    return _parse_all(key, ((f"{path}{suffix}", definition) for suffix, definition in definitions), context)


def _parse_definitions(entry_text: str) -> list[tuple[str, Any]]:
    """The definitions of series in an entry, with the suffixes of their paths, such as `[2]`. Raises EntryError."""
    if len(entry_text.encode()) > ENTRY_MAX_BYTES:
        raise EntryError(f"it is longer than {ENTRY_MAX_BYTES} bytes: spread it over several entries")
    try:
        document = yaml_text.parse_texts(entry_text.encode())
    except DecodeError as error:
        raise EntryError(f"it is neither YAML nor JSON: {error}") from None
    if document.duplicates:
        raise EntryError(document.duplicates[0])
    if isinstance(document.value, list):
        return [(f"[{index}]", definition) for index, definition in enumerate(document.value)]
    return [("", "" if document.value is None else document.value)]


def _parse_all(key: str, definitions: Iterable[tuple[str, Any]], context: EntryContext) -> ParsedEntry:
    """The series of one key's definitions (path, YAML value), and the problems of those that are invalid."""
    series, problems = [], []
    for path, definition in definitions:
        try:
            series.append(_parse_series(key, definition, context))
        except EntryError as error:
            problems.append(EntryProblem(path, str(error)))
    return ParsedEntry(tuple(series), tuple(problems))


def _parse_series(key: str, definition: Any, context: EntryContext) -> Series:
    """The series that a value or a map of fields defines. Raises EntryError."""
    allowed = (*SUBJECT_FIELDS, *COMMON_FIELDS) if context.api == "custom" else COMMON_FIELDS
    entry_fields = fields.mapping({"value": definition} if isinstance(definition, str) else definition, "", allowed)
    return Series(
        metric=_parse_metric_name(entry_fields.get("metric", key)),
        subject=_parse_subject(entry_fields, context),
        labels=fields.texts(entry_fields.get("labels", {}), "labels"),
        schedule=_parse_schedule(entry_fields, context.start_ns),
        shared_by=fields.selector(entry_fields["sharedBy"], "sharedBy") if "sharedBy" in entry_fields else None,
        window_s=fields.whole_seconds(entry_fields["window"], "window") if "window" in entry_fields else None,
    )


def _parse_metric_name(yaml_value: Any) -> str:
    """The name of the metric. Raises EntryError."""
    name = fields.text(yaml_value, "metric")
    if not name:
        raise EntryError("metric must not be empty")
    for problem in names.path_segment_errors(name):
        raise EntryError(f"metric: {fields.shown(name)} {problem}")
    return name


def _parse_subject(entry_fields: Fields, context: EntryContext) -> Subject:
    """What an entry describes: pods, an object, or nothing in the cluster. Raises EntryError."""
    if context.api == "external":
        return Outside()
    match [name for name in SUBJECT_FIELDS if name in entry_fields]:
        case ["pods"]:
            return PodSelection(fields.selector(entry_fields["pods"], "pods"))
        case ["object"]:
            return context.kinds.described(fields.text(entry_fields["object"], "object"), context.namespace)
        case _:
            raise EntryError("it must say what it describes: either `pods: SELECTOR` or `object: KIND/NAME`")


def _parse_schedule(entry_fields: Fields, default_start_ns: int) -> Schedule:
    """The values of an entry over time: constant, in steps, or a ramp. Raises EntryError.

    Args:
        default_start_ns: the start of an entry that states none, nanoseconds since the epoch.
    """
    has_start = "start" in entry_fields
    start_ns = fields.instant_ns(entry_fields["start"], "start") if has_start else default_start_ns
    match [name for name in SCHEDULE_FIELDS if name in entry_fields]:
        case ["value"]:
            return Constant(fields.quantity(entry_fields["value"], "value"))
        case ["steps"] | ["value", "steps"]:
            initial_quantity = fields.quantity(entry_fields["value"], "value") if "value" in entry_fields else None
            step_definitions = fields.sequence(entry_fields["steps"], "steps")
            return Steps(
                [
                    _parse_step(step_definition, f"steps[{index}]", start_ns)
                    for index, step_definition in enumerate(step_definitions)
                ],
                initial_quantity,
            )
        case ["ramp"]:
            return _parse_ramp(entry_fields["ramp"], start_ns)
        case _:
            raise EntryError(
                "it must have one of `value`, `steps` and `ramp`; with `steps`, `value` is what was before"
            )


def _parse_step(step_definition: Any, path: str, start_ns: int) -> ValueStep:
    """A step, at an instant or so long after the start. Raises EntryError."""
    step_fields = fields.mapping(step_definition, path, ("after", "at", "value"))
    if ("after" in step_fields) == ("at" in step_fields):
        raise EntryError(f"{path} must have either `after` or `at`")
    step_quantity = fields.quantity(fields.required(step_fields, "value", path), f"{path}.value")
    if "at" in step_fields:
        return ValueStep(fields.instant_ns(step_fields["at"], f"{path}.at"), step_quantity)
    return ValueStep(start_ns + fields.span_ns(step_fields["after"], f"{path}.after"), step_quantity)


def _parse_ramp(ramp_definition: Any, start_ns: int) -> Ramp:
    """A ramp from one value to another. Raises EntryError."""
    ramp_fields = fields.mapping(ramp_definition, "ramp", ("from", "to", "over", "after"))
    span_ns = fields.span_ns(fields.required(ramp_fields, "over", "ramp"), "ramp.over")
    if not span_ns:
        raise EntryError("ramp.over must be more than 0s")
    return Ramp(
        first=fields.quantity(fields.required(ramp_fields, "from", "ramp"), "ramp.from"),
        last=fields.quantity(fields.required(ramp_fields, "to", "ramp"), "ramp.to"),
        start_ns=start_ns + fields.span_ns(ramp_fields.get("after", "0s"), "ramp.after"),
        span_ns=span_ns,
    )
