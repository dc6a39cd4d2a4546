"""Reads a load: a constant, steps, a shape, a trace of a file or of Prometheus, or the sum of several.

Called by `workloads` and `scenario_parts`. The result is a series of whole numbers: the amounts of the file times
`per_unit`, which the caller states (1000 for thousandths). A new kind of load: a name in _KINDS, and its case in
`_read_one`; a new shape: an entry of `load_shapes.SHAPES`.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Protocol, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from podscaler.base.errors import UsageError
from podscaler.simulation.files import load_shapes, trace_series, traces
from podscaler.simulation.files.file_fields import FileField
from podscaler.simulation.files.load_shapes import NoiseShape
from podscaler.simulation.files.trace_series import Gaps, PointRules, TraceUnit
from podscaler.simulation.files.traces import TraceColumns, TracePoint
from podscaler.simulation.model import step_series
from podscaler.simulation.model.step_series import StepSeries

_FILE_FIELDS = ("time", "value", "unit", "every", "scale", "timezone", "gaps", "from")
_CONSTANT = ""
"""The kind of a load that is only a number."""
_KINDS = ("steps", "csv", "parquet", "prometheus", *load_shapes.SHAPES, "noise")


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRequest:
    """A range query of Prometheus's HTTP API.

    Attributes:
        url: of Prometheus; it may have a user and a password.
        start_s, end_s: since the epoch.
        token_file, ca_file: for the connection; None: none, and those of the machine.
    """

    url: str
    query: str
    start_s: float
    end_s: float
    step_s: float
    token_file: Path | None = None
    ca_file: Path | None = None


class RangeQuery(Protocol):
    """A function that queries Prometheus, as `podscaler.cli.simulate.range_queries.read`.

    The command line passes it in, because a simulation has no network.
    """

    def __call__(self, request: RangeRequest) -> Sequence[tuple[float, str]]:
        """The instants (seconds since the epoch) and values of the one series of the result. Raises UsageError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadContext:
    """What the loads of a file have in common.

    Attributes:
        folder: the folder of the scenario file, to which names of files are relative.
        duration_ms, seed: those of the scenario.
        range_query: queries Prometheus; None: its loads are errors.
    """

    folder: Path
    duration_ms: int
    seed: int
    range_query: RangeQuery | None = None


def read(field: FileField, context: LoadContext, per_unit: int) -> StepSeries:
    """The series of a load, whose values are the amounts of the file times `per_unit`. Raises UsageError."""
    load_fields = field.elements() if isinstance(field.value, list) else [field]
    noises, series_list = [], []
    for load_field in load_fields:
        kind = _load_kind(load_field)
        if kind == "noise":
            load_field.members(("noise",))
            noises.append(load_shapes.read_noise(load_field.child("noise")))
        else:
            series_list.append(_read_one(load_field, kind, context, per_unit))
    if not series_list:
        raise field.error("a load is needed that is not noise, such as a constant, `steps`, or a `csv` file")
    return _with_noises(_sum_of_series(series_list), noises, context, per_unit)


def _with_noises(total: StepSeries, noises: Iterable[NoiseShape], context: LoadContext, per_unit: int) -> StepSeries:
    """The sum of the loads, with each noise added to it in order."""
    for noise in noises:
        total = noise.add_to(total, context.duration_ms, context.seed, per_unit)
    return total


def _load_kind(field: FileField) -> str:
    """The kind of a load: one of _KINDS, or _CONSTANT. Raises UsageError."""
    if not isinstance(field.value, dict):
        return _CONSTANT
    kinds = [name for name in field.value if name in _KINDS]
    if len(kinds) != 1:
        problem = f"{' and '.join(kinds)} stand together" if kinds else "no kind of load is named"
        raise field.error(f"{problem}; one of {', '.join(_KINDS)} is needed, and a list of loads is their sum")
    return str(kinds[0])


def _sum_of_series(series: list[StepSeries]) -> StepSeries:
    """The sum of one or more series at each instant."""
    if len(series) == 1:
        return series[0]
    instants = sorted(set(itertools.chain([0], *(one_series.at_ms for one_series in series))))
    return step_series.from_steps(
        (at_ms, sum(one_series.value_at(at_ms) for one_series in series)) for at_ms in instants
    )


def _read_one(field: FileField, kind: str, context: LoadContext, per_unit: int) -> StepSeries:
    """The load of a kind that `_load_kind` returned, but noise. Raises UsageError."""
    if kind == _CONSTANT:
        return step_series.constant(field.scaled(per_unit))
    match kind:
        case "steps":
            return _read_steps(field.members(("steps",))["steps"], per_unit)
        case "csv":
            return _read_trace_file(field, kind, traces.csv_points, context, per_unit)
        case "parquet":
            return _read_trace_file(field, kind, traces.parquet_points, context, per_unit)
        case "prometheus":
            return _read_prometheus(field.members(("prometheus",))["prometheus"], context, per_unit)
    shape_field = field.members((kind,)).get(kind)
    if shape_field is None:
        raise field.error(f"the parameters of {kind} are missing")
    steps = sorted(load_shapes.steps_of_shape(kind, shape_field, context.duration_ms), key=lambda step: step[0])
    # Of two steps at one instant the later one counts, such as a rise of zero length.
    amount_by_instant = {at_ms: round(amount * per_unit) for at_ms, amount in steps}
    return step_series.from_steps(amount_by_instant.items())


def _read_steps(field: FileField, per_unit: int) -> StepSeries:
    """A load of instants and values; the value at 0s is needed. Raises UsageError."""
    steps: dict[int, int] = {}
    for name, member in field.entries().items():
        at_ms = FileField(name, member.path, member.document).duration_ms()  # the key is the instant
        if at_ms in steps:
            raise member.error(f"there is another step at {name}")
        steps[at_ms] = member.scaled(per_unit)
    if 0 not in steps:
        raise field.error("a step at 0s is needed: the value at the start")
    return step_series.from_steps(sorted(steps.items()))


def _read_trace_file(
    field: FileField,
    kind: str,
    read_points: Callable[[TraceColumns], Iterable[TracePoint]],
    context: LoadContext,
    per_unit: int,
) -> StepSeries:
    """A load of a trace file, whose columns and gaps the fields describe. Raises UsageError."""
    members = field.members((kind, *_FILE_FIELDS))
    path = context.folder / members[kind].text()
    unit = cast("TraceUnit", members["unit"].choice(get_args(TraceUnit))) if "unit" in members else "value"
    if "time" not in members:
        raise field.error("`time` is needed: the column of instants")
    if unit == "requests" and "value" in members:
        raise field.error("each row is one request, so there is no `value`")
    if unit != "requests" and "value" not in members:
        raise field.error("`value` is needed: the column of values")
    timezone = _read_timezone(members.get("timezone"))
    value_column = members["value"].text() if "value" in members else None
    columns = TraceColumns(path, members["time"].text(), value_column, timezone)
    rules = PointRules(
        name=str(path),
        duration_ms=context.duration_ms,
        unit=unit,
        every_ms=members["every"].duration_ms(low_ms=1) if "every" in members else None,
        scale=float(members["scale"].amount()) if "scale" in members else 1.0,
        gaps=_read_gaps(members),
        start_ms=traces.parse_instant_ms(str(members["from"].value), columns, "`from`") if "from" in members else None,
    )
    return trace_series.to_series(read_points(columns), rules, per_unit)


def _read_gaps(members: dict[str, FileField]) -> Gaps:
    """What is done about gaps of a trace; an error by default. Raises UsageError."""
    return cast("Gaps", members["gaps"].choice(get_args(Gaps))) if "gaps" in members else "error"


def _read_timezone(field: FileField | None) -> tzinfo:
    """The time zone by its IANA name; UTC without a field. Raises UsageError."""
    if field is None:
        return UTC
    try:
        return ZoneInfo(field.text())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise field.error(f"{field.value!r} is not a time zone such as Europe/Berlin") from None


_PROMETHEUS_REQUIRED = {
    "url": "of Prometheus",
    "query": "in PromQL",
    "start": "an instant such as 2026-01-31T18:00:00Z",
}
_PROMETHEUS_FIELDS = ("url", "query", "start", "end", "step", "scale", "gaps", "tokenFile", "caFile")


def _read_prometheus(field: FileField, context: LoadContext, per_unit: int) -> StepSeries:
    """A load of a range query. Raises UsageError if the caller reads no Prometheus."""
    members = field.members(_PROMETHEUS_FIELDS)
    for name, explanation in _PROMETHEUS_REQUIRED.items():
        if name not in members:
            raise field.error(f"`{name}` is needed: {explanation}")
    if context.range_query is None:
        raise field.error("Prometheus is read by the command line only")
    start_s = _parse_instant_s(members["start"])
    end_s = _parse_instant_s(members["end"]) if "end" in members else start_s + context.duration_ms / 1000
    if end_s <= start_s:
        raise members["end"].error("`end` is not after `start`")
    step_ms = members["step"].duration_ms(low_ms=1000) if "step" in members else 60_000
    request = RangeRequest(
        url=members["url"].text(),
        query=members["query"].text(),
        start_s=start_s,
        end_s=end_s,
        step_s=step_ms / 1000,
        token_file=context.folder / members["tokenFile"].text() if "tokenFile" in members else None,
        ca_file=context.folder / members["caFile"].text() if "caFile" in members else None,
    )
    rules = PointRules(
        name=f"the query {request.query}",
        duration_ms=context.duration_ms,
        every_ms=step_ms,
        scale=float(members["scale"].amount()) if "scale" in members else 1.0,
        gaps=_read_gaps(members),
    )
    try:
        samples = context.range_query(request)
    except UsageError as error:
        raise field.error(str(error)) from None
    return trace_series.to_series(_points_of_samples(samples, rules), rules, per_unit)


def _points_of_samples(samples: Iterable[tuple[float, str]], rules: PointRules) -> Iterable[TracePoint]:
    """The points of samples (seconds since the epoch, value as text); NaN is a missing value. Raises UsageError."""
    for at_s, value_text in samples:
        location = datetime.fromtimestamp(at_s, UTC).isoformat()
        value = float(value_text)
        if value < 0 or value == math.inf:
            raise rules.error(location, f"the value {value_text} cannot be a load")
        yield TracePoint(round(at_s * 1000), None if math.isnan(value) else value, location)


def _parse_instant_s(field: FileField) -> float:
    """The seconds since the epoch of an ISO 8601 instant, in UTC unless it has an offset. Raises UsageError."""
    try:
        instant = datetime.fromisoformat(field.text())
    except ValueError:
        raise field.error(f"{field.value!r} is not an instant such as 2026-01-31T18:00:00Z") from None
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
