"""Opens, reads and closes the sources of MetricSources: one for each object, whose connections stay open between reads.

Here a *source* is the open ExternalSource, and `metric_source` the API object that it was opened for.
`podscaler.sources.direct_metrics` and `podscaler explain` call `read`; `podscaler.sources.cluster_sources` calls
`discard` for edited and deleted objects, and `close` at the end. Rules:

1. Reads of one object do not overlap (the caller ensures that). At most CONCURRENT_READS objects are read at once, and
   NAMESPACE_READS of one namespace; a read that waits for longer than WAIT_MAX_S fails with ReadTimeout (`fair_slots`).
2. After that wait a read takes at most `spec.timeoutSeconds`, with the Secrets and the connection. Its slot is free
   once the cancelled read has ended, which may be later.
3. A source is opened again when the object's uid, its spec or a credential changed, and after each failure but
   InvalidValue.
4. A source that was not read for IDLE_S is closed by the next read of any object.
5. After two reads in a row with a time-out (rule 2) further reads fail at once, for BACKOFF_FIRST_S; each further
   time-out doubles that, up to BACKOFF_MAX_S. The first read after uid or spec changed is made at once.
6. No exception but cancellation escapes `read`: a failure is a result, whose text has no credentials.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from podscaler.base.clock import Clock
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key, key_of
from podscaler.sources import credentials, metric_numbers, source_types
from podscaler.sources.fair_slots import FairSlots
from podscaler.sources.metric_source import MetricSource, SourceSpec, parse_spec
from podscaler.sources.protocol import ExternalSource, InvalidValue, ReadTimeout, SourceConfig, SourceError
from podscaler.sources.source_types import FindFactory

log = logging.getLogger(__name__)

CONCURRENT_READS, NAMESPACE_READS = 64, 8
WAIT_MAX_S = 30.0
BACKOFF_FIRST_S, BACKOFF_MAX_S = 5.0, 60.0
IDLE_S = 600.0
CLOSE_TIMEOUT_S = 2.0
"""How long closing one source may take."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReadResult:
    """The outcome of one read.

    Attributes:
        query: the query and the system in words (`redis list jobs at redis:6379/0`); empty if the source could not be
            opened.
        value_milli: the value in thousandths; None if the read failed.
        error: why it failed; None if it did not.
        read_at_ns: when the read ended, nanoseconds since the epoch.
    """

    query: str
    value_milli: int | None
    error: SourceError | None
    read_at_ns: int


@dataclass(slots=True)
class _OpenSource:
    """An open source, and what it was opened with.

    Attributes:
        opened_with: uid and spec of the object, and the credentials; with others a new source is opened.
        used_at_s: when the latest read began, by the monotonic clock.
    """

    source: ExternalSource
    opened_with: tuple[str, Mapping[str, Any], Mapping[str, str]]
    used_at_s: float


@dataclass(frozen=True, slots=True)
class _Timeouts:
    """The latest reads of an object, which had no response in time (rule 5).

    Attributes:
        uid, spec: those of the object.
        query: the query of the latest read.
        count: the number of such reads in a row.
        until_s: reads before this instant of the monotonic clock fail at once.
    """

    uid: str
    spec: Mapping[str, Any]
    query: str
    count: int
    until_s: float

    def are_of(self, metric_source: MetricSource) -> bool:
        """Whether the object has still the uid and spec of these reads."""
        return (self.uid, self.spec) == (metric_source.metadata.uid, metric_source.spec)


class OpenSources:
    """The open sources of one process, by the module's rules; a `podscaler.sources.direct_metrics.SourceReader`.

    Args:
        client: reads Secrets.
        clock: for time limits, and for the instants of results.
        folder: the folder below which files may be read; None if no file may be read.
        find_factory: finds the factory of a type.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        folder: Path | None = None,
        find_factory: FindFactory = source_types.find_factory,
    ) -> None:
        self._client = client
        self._clock = clock
        self._folder = folder
        self._find_factory = find_factory
        self._open_sources: dict[Key, _OpenSource] = {}
        self._slots = FairSlots(clock, total=CONCURRENT_READS, group_max=NAMESPACE_READS, wait_max_s=WAIT_MAX_S)
        self._timeouts: dict[Key, _Timeouts] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def read(self, metric_source: MetricSource) -> ReadResult:
        """The value of the object's source now, or the error; closes the source after an error, and idle sources."""
        self._close_idle()
        attempt = _Attempt(metric_source)
        error: SourceError | None = None
        try:
            spec = parse_spec(metric_source.spec)
            value_milli = await self._read_with_slot(attempt, spec)
        except SourceError as failure:
            value_milli, error = None, type(failure)(credentials.redacted(str(failure), attempt.credentials.values()))
        except Exception as failure:
            failure_text = f"{type(failure).__name__}: {failure}"
            value_milli, error = None, SourceError(credentials.redacted(failure_text, attempt.credentials.values()))
        if error is not None and not isinstance(error, InvalidValue):
            self.discard(key_of(metric_source))
        return ReadResult(attempt.query, value_milli, error, self._clock.now_ns())

    def discard(self, key: Key) -> None:
        """Close the source of that object in the background, if it is open; the next read opens a new one."""
        open_source = self._open_sources.pop(key, None)
        if open_source is not None:
            task = asyncio.get_running_loop().create_task(self._close_in_time(open_source.source))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all sources; return when they are closed, or after CLOSE_TIMEOUT_S. Errors are logged."""
        for key in list(self._open_sources):
            self.discard(key)
        await asyncio.gather(*self._closing)

    async def _read_with_slot(self, attempt: "_Attempt", spec: SourceSpec) -> int:
        """The value after a slot was free, by rules 1, 2 and 5. Raises SourceError, and what the source raises."""
        metric_source = attempt.metric_source
        key, namespace = key_of(metric_source), metric_source.metadata.namespace
        earlier_timeouts = self._timeouts.get(key)
        if earlier_timeouts is not None and not earlier_timeouts.are_of(metric_source):
            earlier_timeouts = None
        earlier_count = earlier_timeouts.count if earlier_timeouts is not None else 0
        if earlier_timeouts is not None and self._clock.monotonic_s() < earlier_timeouts.until_s:
            attempt.query = earlier_timeouts.query
            raise ReadTimeout(
                f"no response within {spec.timeout_s:g} s, {earlier_count} times:"
                f" it is read again after {_backoff_s(earlier_count):g} s"
            )
        await self._slots.take(namespace)
        self._timeouts.pop(key, None)
        work = self._read_milli(attempt, spec)
        try:
            return await self._run_within(work, spec.timeout_s, on_end=lambda: self._slots.release(namespace))
        except (ReadTimeout, TimeoutError):
            count = earlier_count + 1
            until_s = self._clock.monotonic_s() + _backoff_s(count)
            self._timeouts[key] = _Timeouts(
                metric_source.metadata.uid, metric_source.spec, attempt.query, count=count, until_s=until_s
            )
            raise

    async def _read_milli(self, attempt: "_Attempt", spec: SourceSpec) -> int:
        """The value in thousandths, read with current credentials. Raises SourceError, and what the source raises."""
        namespace = attempt.metric_source.metadata.namespace
        attempt.credentials = await credentials.read(self._client, namespace, spec.credentials)
        source = await self._get_source(attempt, spec)
        attempt.query = credentials.redacted(source.query, attempt.credentials.values())
        return metric_numbers.milli_of(await source.read())

    async def _get_source(self, attempt: "_Attempt", spec: SourceSpec) -> ExternalSource:
        """The object's source, opened now if none is open for this spec and these credentials.

        Raises SourceError, and what the factory raises.
        """
        key = key_of(attempt.metric_source)
        required = (attempt.metric_source.metadata.uid, attempt.metric_source.spec, attempt.credentials)
        open_source = self._open_sources.get(key)
        if open_source is None or open_source.opened_with != required:
            self.discard(key)
            config = SourceConfig(
                spec.settings, self._clock, attempt.credentials, spec.tls, timeout_s=spec.timeout_s, folder=self._folder
            )
            # a time-out does not stop the thread: its source is dropped, and has no connection to close
            source = await asyncio.to_thread(self._call_factory, spec, config)
            open_source = self._open_sources[key] = _OpenSource(source, required, self._clock.monotonic_s())
        open_source.used_at_s = self._clock.monotonic_s()
        return open_source.source

    def _call_factory(self, spec: SourceSpec, config: SourceConfig) -> ExternalSource:
        """A new source. Blocks, as the import of a client library does."""
        return self._find_factory(spec.type, spec.is_custom)(config)

    async def _run_within(
        self, work: Coroutine[Any, Any, T], timeout_s: float, *, on_end: Callable[[], None] | None = None
    ) -> T:
        """The result of `work`. Raises ReadTimeout if it takes longer, and what it raises.

        `on_end` is called when `work` has ended, which may be later.
        """
        task = asyncio.ensure_future(work)
        if on_end is not None:
            task.add_done_callback(lambda _: on_end())
        timer = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait((task, timer), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ReadTimeout(f"no response within {timeout_s:g} s")
            return task.result()
        finally:
            _cancel(task)
            _cancel(timer)

    def _close_idle(self) -> None:
        """Close the sources that were not read for IDLE_S, and forget time-outs that are as old."""
        oldest_s = self._clock.monotonic_s() - IDLE_S
        for key in [key for key, open_source in self._open_sources.items() if open_source.used_at_s < oldest_s]:
            self.discard(key)
        for key in [key for key, timeouts in self._timeouts.items() if timeouts.until_s < oldest_s]:
            del self._timeouts[key]

    async def _close_in_time(self, source: ExternalSource) -> None:
        """Close a source, for at most CLOSE_TIMEOUT_S; a failure is logged."""
        try:
            await self._run_within(_call_close(source), CLOSE_TIMEOUT_S)
        except Exception as error:  # the text may have credentials
            log.debug("a source could not be closed: %s", type(error).__name__)


class _Attempt:
    """The state of one read: the query and the credentials, as far as they are known when it fails."""

    def __init__(self, metric_source: MetricSource) -> None:
        self.metric_source = metric_source
        self.query = ""
        self.credentials: dict[str, str] = {}


def _backoff_s(timeout_count: int) -> float:
    """How long an object is not read after that many time-outs in a row."""
    if timeout_count < 2:
        return 0.0
    doublings = min(timeout_count - 2, 10)  # BACKOFF_MAX_S is reached before; a float has no 2 ** 1024
    return min(BACKOFF_FIRST_S * 2.0**doublings, BACKOFF_MAX_S)


async def _call_close(source: ExternalSource) -> None:
    """Close a source. As a coroutine, so that an error of the call itself is raised within the task, too."""
    await source.close()


def _cancel(task: "asyncio.Future[Any]") -> None:
    """Cancel a task that nothing waits for any more, and retrieve its exception."""
    task.cancel()
    task.add_done_callback(lambda ended_task: ended_task.cancelled() or ended_task.exception())
