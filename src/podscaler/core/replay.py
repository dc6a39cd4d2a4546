"""Decides about the syncs of a recording again, and converts histories from and to their recorded form.

`podscaler.cli.commands.replay` calls `decisions`; `podscaler.cli.explain`, `podscaler.cli.diagnosis` and
`podscaler.simulation.evaluation` use a Replay line by line; `podscaler.controller` stores histories with
`write_history` and `read_history`. Histories and selectors are kept from line to line for each autoscaler, as in a
controller; a line that has its own replaces them. A new recorded fact: a field in `podscaler.api.typed.recording`, read
in `_recorded_observation`.

Invariants: lines of one autoscaler are in time order. Pods and specs repeat from line to line, so each distinct text is
decoded once, in bounded caches.

Source: the format of the decision vectors (docs/recordings.md).
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from podscaler.api.machinery import instants, meta
from podscaler.api.typed import autoscaling, metrics, pods, recording
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.api.typed.recording import RecordingError, RecordingLine
from podscaler.core import decide, settle
from podscaler.core.calculation import samples
from podscaler.core.decision import Decision, Draft
from podscaler.core.model import api_conversion, failure_policy, history, observation, settings
from podscaler.core.model import spec as specs
from podscaler.core.model.history import History, LastProposal, Recommendation, ScaleEvent
from podscaler.core.model.metric_spec import Metric, PodsMetric, ResourceMetric
from podscaler.core.model.observation import Measurement, Neighbours, Observation, Pod
from podscaler.core.model.selector_store import RecordedNeighbours, SelectorStore
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Trace

CACHED_PODS = 20_000
CACHED_SPECS = 5_000
"""The highest numbers of decoded pods and of specs in the caches; a full cache is emptied."""
NO_FLAGS: Mapping[str, Any] = {}

_POD = msgspec.json.Decoder(pods.Pod)
_SPEC = msgspec.json.Decoder(autoscaling.HorizontalPodAutoscalerSpec)


class EventLine(msgspec.Struct, frozen=True, gc=False):
    """One event of a decision line."""

    type: str
    reason: str
    message: str


class DecisionLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the decisions format, version 1: the decision about one sync.

    Attributes:
        time: the instant of the sync, RFC 3339.
        hpa: `namespace/name` of the autoscaler.
        replicas: the count written to the scale; None: no write.
        status: the status to write, of autoscaling/v2.
        events: the events of the sync, in order.
        error: the error of the sync, or empty.
        trace: each step of the decision (an extension of the format); unset unless it is asked for.
    """

    time: str
    hpa: str
    replicas: int | None
    status: HorizontalPodAutoscalerStatus
    events: tuple[EventLine, ...]
    error: str
    trace: Trace | msgspec.UnsetType = msgspec.UNSET


class RecordedSync(NamedTuple):
    """The inputs of `decide` for one sync line: the parsed spec, the observation, the history and the instant in ns."""

    line: RecordingLine
    spec: Spec
    observation: Observation
    prior_history: History
    now_ns: int


def decisions(
    lines: Iterable[bytes], *, with_trace: bool = False, version: str = "", flags: Mapping[str, Any] = NO_FLAGS
) -> Iterator[DecisionLine]:
    """The decision for each sync line of a recording, in order.

    Args:
        lines: the recording.
        with_trace: whether each decision has its trace.
        version, flags: override the header's; empty: the header's.

    Blank lines are skipped. Raises RecordingError naming the first line (from 1) that cannot be used, after yielding
    the decisions of the lines before it.
    """
    replay: Replay | None = None
    line_number = 0
    try:
        for line in lines:
            line_number += 1
            if not line or line.isspace():
                continue
            if replay is None:
                replay = Replay(_with_overrides(recording.read_header(line), version, flags))
            elif decided := replay.decide_line(line):
                yield _decision_line(*decided, with_trace=with_trace)
    except RecordingError as error:
        raise RecordingError(f"line {line_number}: {error}") from None
    except (OSError, EOFError, zlib.error) as error:  # of a compressed file that is damaged
        raise RecordingError(f"after line {line_number}: {error}") from None
    if replay is None:
        raise RecordingError("line 1: the recording is empty; its first line must be a header")


def _with_overrides(
    header: recording.RecordingHeader, version: str, flags: Mapping[str, Any]
) -> recording.RecordingHeader:
    """The header with another version, unless that is empty, and with other values of some flags."""
    kubernetes = version or header.kubernetes
    return msgspec.structs.replace(header, kubernetes=kubernetes, flags=header.flags | dict(flags))


class Replay:
    """The state of the replay of one recording: histories, selectors and the latest syncs of its autoscalers.

    Raises RecordingError for flags or a version that cannot be used.

    Args:
        header: the first line of the recording, with flags and the version of Kubernetes.
    """

    def __init__(self, header: recording.RecordingHeader) -> None:
        try:
            self.settings: Settings = settings.from_flags(header.flags, header.kubernetes)
        except ValueError as error:
            raise RecordingError(str(error)) from None
        self._histories: dict[str, History] = {}
        self._latest_sync_at: dict[str, int] = {}
        self._selectors = SelectorStore()
        self._pods: dict[bytes, Pod] = {}
        self._specs: dict[tuple[str, str, bytes, tuple[tuple[str, str], ...]], Spec] = {}

    def decide_line(self, line_json: bytes) -> tuple[RecordingLine, Spec, Decision] | None:
        """A sync line with its spec and decision (`parse`, then `decide`); None for a line that ends an autoscaler.

        Raises RecordingError.
        """
        sync = self.parse(line_json)
        return None if sync is None else (sync.line, sync.spec, self.decide(sync))

    def parse(self, line_json: bytes) -> RecordedSync | None:
        """The inputs of a sync line, for `decide`; None for a line that ends an autoscaler, which is then forgotten.

        The instant becomes that of the autoscaler's latest sync. Raises RecordingError, also for an earlier instant.
        """
        line = recording.read_line(line_json)
        try:
            now_ns = instants.parse(line.time)
            if line.hpa is None:
                self._forget(line.deleted)
                return None
            spec = self._parsed_spec(line.hpa)
            self._set_latest_sync(spec.key, now_ns)
            return RecordedSync(
                line, spec, self._recorded_observation(line, line.hpa, spec), self._prior_history(line, spec), now_ns
            )
        except (ValueError, msgspec.DecodeError) as error:
            raise RecordingError(str(error)) from None

    def decide(self, sync: RecordedSync) -> Decision:
        """The decision about the sync that `parse` returned last; its history and selector are kept.

        Raises RecordingError.
        """
        try:
            decision = decide.decide(sync.spec, sync.observation, sync.prior_history, sync.now_ns, self.settings)
            decision = _after_writes(decision, sync)
        except ValueError as error:
            raise RecordingError(str(error)) from None
        self._histories[sync.spec.key] = decision.history
        if decision.selector is not None:
            self._selectors.store(sync.spec.key, decision.selector)
        return decision

    def _forget(self, key: str) -> None:
        """Drop everything that is known of an autoscaler."""
        self._histories.pop(key, None)
        self._latest_sync_at.pop(key, None)
        self._selectors.forget(key)

    def _set_latest_sync(self, key: str, now_ns: int) -> None:
        """Note the instant of a sync. Raises RecordingError if it is before the autoscaler's previous one."""
        if now_ns < self._latest_sync_at.get(key, now_ns):
            raise RecordingError(f"time goes backwards for {key}: lines of one autoscaler must be in time order")
        self._latest_sync_at[key] = now_ns

    def _prior_history(self, line: RecordingLine, spec: Spec) -> History:
        """The history before a sync: the recorded one if the line has it, else the replayed one."""
        if line.history is not None:
            return read_history(line.history)
        return self._histories.get(spec.key, history.EMPTY)

    def _recorded_observation(self, line: RecordingLine, hpa: recording.RecordedAutoscaler, spec: Spec) -> Observation:
        """The observation of a recorded sync."""
        return Observation(
            scale=self._recorded_scale(line, spec),
            status=hpa.status,
            generation=hpa.metadata.generation,
            pods=[self._parsed_pod(bytes(pod_json)) for pod_json in line.pods or ()],
            metrics=self._recorded_measurements(line, spec),
            neighbours=self._neighbours(line, spec),
            is_registered=not line.gone,
        )

    def _neighbours(self, line: RecordingLine, spec: Spec) -> Neighbours:
        """The other autoscalers of the namespace: the recorded ones if the line has them, else of earlier lines."""
        if line.neighbours is not None:
            return RecordedNeighbours(line.neighbours)
        return self._selectors.namespace(spec.namespace)

    def _recorded_scale(self, line: RecordingLine, spec: Spec) -> observation.Scale | observation.Failure:
        """The recorded scale, or the failure to read it. Raises RecordingError if the line has neither."""
        if line.scale is not None:
            return api_conversion.scale(line.scale)
        if spec.target_fault:
            return observation.Failure("")  # the target is wrong, so that no scale was read; the text is not used
        raise RecordingError("`scale` is missing")

    def _parsed_spec(self, hpa: recording.RecordedAutoscaler) -> Spec:
        """The spec of a recorded autoscaler; equal JSON is parsed once."""
        name, namespace, spec_json = hpa.metadata.name, hpa.metadata.namespace, bytes(hpa.spec)
        annotations = failure_policy.policy_annotations(hpa.metadata.annotations or {})
        key = namespace, name, spec_json, tuple(sorted(annotations.items()))
        spec = self._specs.get(key)
        if spec is None:
            api_spec, version = _SPEC.decode(spec_json), self.settings.emulation
            spec = specs.parse(namespace, name, api_spec, version, annotations=annotations)
            if len(self._specs) >= CACHED_SPECS:
                self._specs.clear()
            self._specs[key] = spec
        return spec

    def _parsed_pod(self, pod_json: bytes) -> Pod:
        """A recorded pod; equal JSON is parsed once."""
        pod = self._pods.get(pod_json)
        if pod is None:
            pod = api_conversion.pod(_POD.decode(pod_json), self.settings.emulation)
            if len(self._pods) >= CACHED_PODS:
                self._pods.clear()
            self._pods[pod_json] = pod
        return pod

    def _recorded_measurements(self, line: RecordingLine, spec: Spec) -> list[Measurement | None]:
        """The measurements of the recorded responses; those beyond the metrics of the spec are ignored."""
        responses = zip(spec.metrics, line.metrics or (), strict=False)
        return [
            None if response is None else self._recorded_measurement(metric, response) for metric, response in responses
        ]

    def _recorded_measurement(self, metric: Metric, response: recording.RecordedResponse) -> Measurement:
        """The recorded response to a metric query, in the form that the metric's type needs. Raises RecordingError."""
        version = self.settings.emulation
        if isinstance(response, meta.Status):
            return api_conversion.failure(response)
        if isinstance(metric, ResourceMetric) and isinstance(response, metrics.PodMetricsList):
            return samples.of_resource(response, metric.resource, metric.container, version)
        if isinstance(metric, PodsMetric) and isinstance(response, metrics.MetricValueList):
            return samples.of_pods(response, version)
        if isinstance(response, metrics.PodMetricsList):
            raise RecordingError(f"a metric of type {metric.type} cannot have a PodMetricsList for an answer")
        return samples.of_values(response, version)


def _after_writes(decision: Decision, sync: RecordedSync) -> Decision:
    """The decision after the recorded writes. Raises ValueError for a time that cannot be read."""
    line = sync.line
    if decision.draft is not None and (line.scale_update or line.scaled_at):
        scaled_at = instants.parse(line.scaled_at) if line.scaled_at else None
        decision = _after_scale_writes(decision.draft, line.scale_update or (), sync.now_ns, scaled_at)
    if line.status_update is not None:
        decision = settle.unreported(decision, sync.observation.status, sync.spec.name, line.status_update.message)
    return decision


def _after_scale_writes(draft: Draft, responses: Sequence[object], now_ns: int, scaled_at: int | None) -> Decision:
    """The decision after the responses to its attempts to update the scale; further attempts succeed."""
    attempt_ns = now_ns
    for attempt in range(settle.MAX_WRITE_ATTEMPTS):
        response = responses[attempt] if attempt < len(responses) else None
        if not isinstance(response, meta.Status):
            break
        if attempt == settle.MAX_WRITE_ATTEMPTS - 1 or not settle.is_conflict(api_conversion.failure(response)):
            return settle.refused(draft, attempt_ns if scaled_at is None else scaled_at, response.message)
        attempt_ns += settle.WRITE_RETRY_DELAY_NS  # a conflict, after which the write is tried again
    return settle.written(draft, attempt_ns if scaled_at is None else scaled_at)


def _decision_line(line: RecordingLine, spec: Spec, decision: Decision, *, with_trace: bool) -> DecisionLine:
    """The line that records a decision; docs/recordings.md documents it."""
    return DecisionLine(
        time=line.time,
        hpa=spec.key,
        replicas=decision.replicas,
        status=decision.status,
        events=tuple([EventLine(event.type, event.reason, event.message) for event in decision.events]),
        error=decision.error,
        trace=decision.trace if with_trace else msgspec.UNSET,
    )


def write_history(history: History) -> recording.RecordedHistory:
    """The history, for a line of a recording."""
    recommendations = [
        recording.RecordedRecommendation(recommendation.replicas, instants.exact(recommendation.at))
        for recommendation in history.recommendations
    ]
    last_proposals = [
        recording.RecordedProposal(proposal.metric, proposal.replicas, instants.exact(proposal.at), proposal.current)
        for proposal in history.last_proposals
    ]
    return recording.RecordedHistory(
        tuple(recommendations),
        tuple([_written_event(scale_up) for scale_up in history.scale_ups]),
        tuple([_written_event(scale_down) for scale_down in history.scale_downs]),
        tuple(last_proposals),
        "" if history.unread_since is None else instants.exact(history.unread_since),
    )


def read_history(recorded: recording.RecordedHistory) -> History:
    """The history in a line of a recording. Raises ValueError for a time that cannot be read."""
    recommendations = [
        Recommendation(recommendation.replicas, instants.parse(recommendation.time))
        for recommendation in recorded.recommendations
    ]
    last_proposals = [
        LastProposal(proposal.metric, proposal.replicas, instants.parse(proposal.time), proposal.current)
        for proposal in recorded.last_proposals
    ]
    return History(
        tuple(recommendations),
        tuple([_read_event(scale_up) for scale_up in recorded.scale_ups]),
        tuple([_read_event(scale_down) for scale_down in recorded.scale_downs]),
        tuple(last_proposals),
        instants.parse(recorded.unread_since) if recorded.unread_since else None,
    )


def _written_event(event: ScaleEvent) -> recording.RecordedScaleEvent:
    return recording.RecordedScaleEvent(event.change, instants.exact(event.at), event.is_outdated)


def _read_event(recorded: recording.RecordedScaleEvent) -> ScaleEvent:
    return ScaleEvent(recorded.change, instants.parse(recorded.time), recorded.outdated)
