"""Explains a recorded sync: from a recording, a single line of one, or decisions with a trace (JSON Lines).

Called by `podscaler.cli.explain.explain`. All syncs up to the requested one are decided, as in a replay, so that the
requested sync is decided with the history that it had. A new format of lines: a case in `_line_reader`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from podscaler.api.machinery import instants
from podscaler.api.typed import autoscaling, recording
from podscaler.api.typed.recording import RecordingError
from podscaler.base.errors import JSON_DECODE_ERRORS, UsageError
from podscaler.cli.explain import explain_request
from podscaler.cli.explain.explain_request import ExplainRequest, ExplainResult
from podscaler.core.decision import Decision
from podscaler.core.model import trace
from podscaler.core.replay import RecordedSync, Replay
from podscaler.explain import comparison, decide_again, explained, wording
from podscaler.explain.explanation_parts import ReportedEvent, TraceSource

SHOWN_NAMES_MAX = 10
"""How many autoscalers an error message lists."""
_STATUS = autoscaling.HorizontalPodAutoscalerStatus


def explain_sync(lines: Iterable[bytes], request: ExplainRequest, *, origin: str) -> ExplainResult:
    """The explanation of the last matching sync, up to the instant of the request if it has one.

    Args:
        lines: of a recording, a sync, or decisions with a trace (as `podscaler replay --trace` and `podscaler explain
            -o json` write them); the first line shows which.
        origin: the name of the file in messages.

    Raises UsageError for lines that cannot be read (with the line's number if the error is in one), for none or several
    matching autoscalers, and for a what-if that cannot be applied.
    """
    search = _Search(request, origin)
    try:
        _read_all(_numbered(lines), search)
    except (OSError, EOFError, RecordingError) as error:
        raise UsageError(f"{origin}: {error}") from None
    return search.result()


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers; an indented JSON document counts as one line."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    for number, line in numbered:
        if line.strip() == b"{":  # the first line of an indented document, to which all further lines belong
            further_lines = [further_line for _, further_line in numbered]  # exhausts the generator of this loop
            yield number, b"\n".join([line, *further_lines])
        else:
            yield number, line


def _read_all(numbered: Iterator[tuple[int, bytes]], search: "_Search") -> None:
    """Read the lines of a recording. Raises RecordingError with the number of the line."""
    read_line: Callable[[bytes], None] | None = None
    for number, line in numbered:
        try:
            if read_line is not None:
                read_line(line)
            else:
                read_line = _read_first(line, search)
        except RecordingError as error:
            raise RecordingError(f"line {number}: {error}") from None


def _read_first(line: bytes, search: "_Search") -> Callable[[bytes], None]:
    """Read the first line; returns the function that reads the following ones. Raises RecordingError."""
    try:
        first_object = msgspec.json.decode(line)
    except JSON_DECODE_ERRORS as error:
        raise RecordingError(str(error)) from None
    except RecursionError:
        raise RecordingError("the line is nested too deeply") from None
    if not isinstance(first_object, dict) or "recording" in first_object:  # read_header raises for what is no object
        return _SyncReader(Replay(recording.read_header(line)), search).read
    read_line = _line_reader(first_object, search)
    read_line(line)
    return read_line


def _line_reader(first_object: dict[str, Any], search: "_Search") -> Callable[[bytes], None]:
    """The reader of lines like the first one. Raises RecordingError for any other object."""
    if "trace" in first_object or "branch" in first_object:  # `branch` is a field of a trace by itself
        return _TraceReader(search).read
    if isinstance(first_object.get("hpa"), str):
        raise RecordingError("the decision has no trace: `podscaler replay --trace` writes them with one")
    if "hpa" in first_object or "deleted" in first_object:
        return _SyncReader(Replay(recording.RecordingHeader(recording.VERSION)), search).read
    raise RecordingError("neither the header of a recording, nor a sync, nor a decision with a trace")


class _Search:
    """Collects the latest result of each autoscaler that the request matches.

    Args:
        request: which autoscaler, and at which time.
        origin: the name of the file in messages.
    """

    def __init__(self, request: ExplainRequest, origin: str) -> None:
        self.request = request
        self._origin = origin
        self._first_sync_ns: dict[str, int] = {}
        self._make_results: dict[str, Callable[[], ExplainResult]] = {}

    def register(self, key: str, at_ns: int) -> bool:
        """Note that the input has this sync, for messages; returns whether it may be the requested one."""
        self._first_sync_ns.setdefault(key, at_ns)
        return self.request.matches(key) and (self.request.at_ns is None or at_ns <= self.request.at_ns)

    def keep(self, key: str, make_result: Callable[[], ExplainResult]) -> None:
        """Keep the function that makes the result of a sync, in place of earlier ones of the same autoscaler."""
        self._make_results[key] = make_result

    def result(self) -> ExplainResult:
        """The result. Raises UsageError if no autoscaler matches, or several."""
        if len(self._make_results) == 1:
            [make_result] = self._make_results.values()
            return make_result()
        if self._make_results:
            names = wording.listed(explain_request.distinct_names(list(self._make_results)), SHOWN_NAMES_MAX)
            raise UsageError(
                f"{self._origin} has {len(self._make_results)} autoscalers that may be meant, name one: {names}"
            )
        raise UsageError(self._absence_reason())

    def _absence_reason(self) -> str:
        """Why no sync was found: the syncs are later, there are none, or only those of other autoscalers."""
        matching = {key: first_ns for key, first_ns in self._first_sync_ns.items() if self.request.matches(key)}
        if matching:
            key = min(matching, key=lambda matching_key: matching[matching_key])
            return (
                f"{self._origin}: the first sync of {key} is at {instants.text(matching[key])}, after the time of --at"
            )
        if not self._first_sync_ns:
            return f"{self._origin} has no syncs"
        names = wording.listed(explain_request.distinct_names(list(self._first_sync_ns)), SHOWN_NAMES_MAX)
        return f"{self._origin} has no autoscaler {self.request.description}; it has {names}"


class _SyncReader:
    """Reads the lines of a recording: decides each sync, and passes the results that match to the search.

    Args:
        replay: carries the history from line to line.
    """

    def __init__(self, replay: Replay, search: _Search) -> None:
        self._replay = replay
        self._search = search

    def read(self, line: bytes) -> None:
        """Decide the sync of a line; one without a sync (a deletion) changes the replay. Raises RecordingError."""
        sync = self._replay.parse(line)
        if sync is None:
            return
        is_requested = self._search.register(sync.spec.key, sync.now_ns)
        # before `decide`, which changes the history in the replay
        has_what_if = is_requested and bool(self._search.request.assignments)
        what_if = self._decide_what_if(sync) if has_what_if else None
        decision = self._replay.decide(sync)
        if is_requested:
            self._search.keep(sync.spec.key, lambda: _explain_decision(decision, what_if, self._search.request))

    def _decide_what_if(self, sync: RecordedSync) -> Decision | UsageError:
        """The decision of the what-if on the facts of this sync, or the error to raise if this sync is explained."""
        try:
            facts = decide_again.recorded_facts(sync, self._replay.settings)
            return decide_again.decide_again(self._search.request.assignments, facts)
        except UsageError as error:
            return error


def _explain_decision(
    decision: Decision, what_if: Decision | UsageError | None, request: ExplainRequest
) -> ExplainResult:
    """The explanation of a decision, compared with that of the what-if unless that is None; raises it if an error."""
    if isinstance(what_if, UsageError):
        raise what_if
    explanation = explained.of_decision(decision)
    if what_if is None:
        return ExplainResult(explanation)
    assignments_text = ",".join(str(assignment) for assignment in request.assignments)
    what_if_explanation = explained.of_decision(what_if, TraceSource.WHAT_IF)
    return ExplainResult(explanation, comparison.of(explanation, what_if_explanation, assignments_text))


class _DecisionLine(msgspec.Struct):
    """The fields of a decision line, or of an explanation, that are used."""

    trace: dict[str, Any]
    status: _STATUS = _STATUS()
    conditions: Sequence[autoscaling.Condition] = ()
    events: Sequence[ReportedEvent] = ()


class _TraceReader:
    """Explains from lines with the trace of a decision alone. Raises RecordingError for a what-if."""

    def __init__(self, search: _Search) -> None:
        self._search = search
        if search.request.assignments:
            raise RecordingError("a trace holds no facts to decide again about: what-if needs the recording")

    def read(self, line: bytes) -> None:
        """Read one line. Raises RecordingError."""
        try:
            line_object = msgspec.json.decode(line)
            decided = msgspec.convert(line_object if "trace" in line_object else {"trace": line_object}, _DecisionLine)
            read_trace = trace.read(decided.trace)
        except (ValueError, TypeError, RecursionError) as error:
            raise RecordingError(f"not a decision with a trace: {error}") from None
        conditions = decided.conditions or decided.status.conditions or ()
        if self._search.register(read_trace.autoscaler, read_trace.now):
            explanation = explained.explain(read_trace, conditions=conditions, events=decided.events)
            self._search.keep(read_trace.autoscaler, lambda: ExplainResult(explanation))
