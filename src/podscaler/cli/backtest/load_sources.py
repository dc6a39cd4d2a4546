"""Reads the source of a backtest: a recording of a controller, a scenario file with its load, or Prometheus.

Called by `podscaler.cli.backtest.backtest` and `podscaler.cli.tune.tune`; `podscaler.cli.backtest.source_flags` makes
the request. The name of a source decides its kind: a new kind is a case in `read`.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from podscaler.api.kinds.autoscaling import conversion
from podscaler.api.machinery import instants
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.cli.backtest import prometheus_source
from podscaler.cli.backtest.prometheus_source import PrometheusRequest
from podscaler.cli.commands import replay as recordings
from podscaler.core.model import settings
from podscaler.simulation.evaluation import recording_scenario
from podscaler.simulation.evaluation.recording_scenario import RecordedSelection
from podscaler.simulation.files import documents, file_fields, scenario_file
from podscaler.simulation.files.documents import ManifestObject
from podscaler.simulation.files.loads import RangeQuery
from podscaler.simulation.model.scenario import SimulationScenario

_MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """The request to a source of load.

    Attributes:
        source: a file, or `-` for a recording on standard input.
        autoscaler: `namespace/name`; empty: the only one.
        begin, end: instants for a recording and for Prometheus, which needs both; durations since the start for a
            scenario; empty: all of it.
        cpu_limit_milli: of a pod of a recording; None: as recorded.
        range_query: sends a range query to Prometheus.
        present: the manifest of the present autoscaler, for Prometheus; None: not stated.
        queries: `NAME=PROMQL` in place of default queries.
        step_s: the distance of values of Prometheus.
        token_file, ca_file: for the connection to Prometheus; None: no token, and the authorities of the machine.
    """

    source: str
    autoscaler: str = ""
    begin: str = ""
    end: str = ""
    cpu_limit_milli: int | None = None
    range_query: RangeQuery
    present: Path | None = None
    queries: tuple[str, ...] = ()
    step_s: float = 60
    token_file: Path | None = None
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSource:
    """A load, and the autoscaler that is compared on it.

    Attributes:
        scenario: its first autoscaler is the present one.
        wire: the present spec in the API's form.
        from_ms: the first instant that counts.
        sentences: what was assumed, and what is not known.
    """

    scenario: SimulationScenario
    wire: HorizontalPodAutoscalerSpec
    from_ms: int = 0
    sentences: tuple[str, ...] = ()


def read(request: SourceRequest) -> LoadSource:
    """The load of a source. Raises UsageError naming file, line and field."""
    if request.source.startswith(("http://", "https://")):
        return _read_prometheus(request)
    if request.source.endswith(_MANIFEST_SUFFIXES):
        return _read_scenario(request)
    if request.source.endswith((".csv", ".parquet")):
        raise UsageError(
            f"{request.source} is a trace: write a scenario file with this load and the manifests of the autoscaler "
            "and its workload (docs/scenario-file.md), and give that"
        )
    return _read_recording(request)


def _read_recording(request: SourceRequest) -> LoadSource:
    """The load of a recording of a controller. Raises UsageError."""
    selection = RecordedSelection(
        autoscaler=request.autoscaler,
        from_ns=instant_ns(request.begin, "--from") if request.begin else None,
        to_ns=instant_ns(request.end, "--to") if request.end else None,
        cpu_limit_milli=request.cpu_limit_milli,
    )
    name = "standard input" if request.source == recordings.STANDARD_STREAM else request.source
    with recordings.open_input(request.source) as file:
        try:
            recorded_autoscalers = recording_scenario.read(recordings.read_lines(file), selection)
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from None
    return LoadSource(
        scenario=recorded_autoscalers.scenario,
        wire=recorded_autoscalers.wire,
        sentences=recorded_autoscalers.assumptions,
    )


def instant_ns(flag_value: str, flag: str) -> int:
    """The instant of a flag, since the epoch. Raises UsageError."""
    try:
        return instants.parse(flag_value)
    except ValueError:
        raise UsageError(f"{flag} {flag_value} is not an instant such as 2026-01-31T12:00:00Z") from None


def _read_prometheus(request: SourceRequest) -> LoadSource:
    """The load that queries of Prometheus return, for the autoscaler of a manifest. Raises UsageError."""
    if request.present is None:
        raise UsageError("--present FILE is needed for Prometheus: the manifest of the autoscaler, with its behavior")
    present_autoscalers = read_autoscalers(request.present)
    matching = [autoscaler for autoscaler in present_autoscalers if request.autoscaler in ("", autoscaler.key)]
    if len(matching) != 1:
        name_text = f" {request.autoscaler}" if request.autoscaler else ""
        raise UsageError(f"{request.present} has {len(matching) or 'no'} autoscalers{name_text}; one is needed (--hpa)")
    spec = documents.parse_spec(matching[0], settings.DEFAULT)
    prometheus_request = PrometheusRequest(
        url=request.source,
        begin=request.begin,
        end=request.end,
        step_s=request.step_s,
        queries=request.queries,
        token_file=request.token_file,
        ca_file=request.ca_file,
    )
    workload = prometheus_source.read(prometheus_request, spec, _wire_spec(matching[0]), request.range_query)
    return LoadSource(scenario=workload.scenario, wire=workload.wire, sentences=workload.assumptions)


def _read_scenario(request: SourceRequest) -> LoadSource:
    """The load of a scenario file, for one of its autoscalers. Raises UsageError."""
    path = Path(request.source)
    scenario = scenario_file.read(path, range_query=request.range_query).scenario
    keys = [autoscaler.spec.key for autoscaler in scenario.autoscalers]
    key = request.autoscaler or keys[0]
    if len(keys) > 1 and not request.autoscaler:
        raise UsageError(f"{path} has {len(keys)} autoscalers; choose one with --hpa: {', '.join(keys)}")
    if key not in keys:
        raise UsageError(f"{path} has no autoscaler {key}; it has {', '.join(keys)}")
    ordered = sorted(scenario.autoscalers, key=lambda autoscaler: autoscaler.spec.key != key)  # the chosen one first
    end_ms = _duration_ms(request.end, "--to") if request.end else scenario.duration_ms
    shortened = msgspec.structs.replace(
        scenario, autoscalers=tuple(ordered), duration_ms=min(end_ms, scenario.duration_ms)
    )
    from_ms = _duration_ms(request.begin, "--from") if request.begin else 0
    wire = next(_wire_spec(autoscaler) for autoscaler in read_autoscalers(path) if autoscaler.key == key)
    return LoadSource(scenario=shortened, wire=wire, from_ms=from_ms)


def _duration_ms(flag_value: str, flag: str) -> int:
    """The duration of a flag in ms. Raises UsageError."""
    try:
        return file_fields.parse_duration_ms(flag_value)
    except ValueError:
        raise UsageError(
            f"{flag} {flag_value} is not a duration since the start of the scenario, such as 90m or 2d"
        ) from None


def read_autoscalers(path: Path) -> list[ManifestObject]:
    """The autoscalers of a file of manifests, and of those that a scenario in it names. Raises UsageError."""
    manifest_objects: list[ManifestObject] = []
    for document in documents.read_file(path):
        if documents.is_scenario(document):
            for name in document.value.get("manifests") or ():
                manifest_objects += read_autoscalers(path.parent / str(name))
        else:
            manifest_objects += [
                manifest for manifest in documents.objects(document) if manifest.kind == conversion.KIND
            ]
    return manifest_objects


def _wire_spec(manifest: ManifestObject) -> HorizontalPodAutoscalerSpec:
    return msgspec.convert(manifest.obj["spec"], HorizontalPodAutoscalerSpec)
