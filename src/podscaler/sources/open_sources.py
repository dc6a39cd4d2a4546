"""Opens, reads and closes the sources of MetricSources: one for each object, whose connections stay open between reads.

`podscaler.sources.direct_metrics` calls `read`. Rules:

1. Reads of one object do not overlap (the caller ensures that); CONCURRENT_READS objects are read at once, at most
   NAMESPACE_READS of one namespace, each after at most WAIT_MAX_S (`fair_slots`).
2. A read takes at most `spec.timeoutSeconds` from then on, with the Secrets and the connection.
3. A source is opened again when the object, its spec or a credential changed, and after each failure but InvalidValue.
4. A source that was not read for IDLE_S is closed, as is that of an object that was deleted.
5. A source that had no response in time twice in a row is not read for a while, which grows from BACKOFF_FIRST_S to
   BACKOFF_MAX_S; the next read of a changed object is made at once.
6. No exception but cancellation escapes: a failure is a result, whose text has no credentials.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from podscaler.base.clock import Clock
from podscaler.kube.client.client import Client
from podscaler.kube.informers.cache import Key, key_of
from podscaler.sources import credentials, metric_numbers, metric_source, source_types
from podscaler.sources.fair_slots import FairSlots
from podscaler.sources.metric_source import MetricSource, SourceSpec
from podscaler.sources.protocol import ExternalSource, InvalidValue, ReadTimeout, SourceConfig, SourceError
from podscaler.sources.source_types import FindFactory

log = logging.getLogger(__name__)

# the figures of the module's rules
CONCURRENT_READS, NAMESPACE_READS = 64, 8
WAIT_MAX_S = 30.0
BACKOFF_FIRST_S, BACKOFF_MAX_S = 5.0, 60.0
IDLE_S = 600.0
CLOSE_TIMEOUT_S = 2.0
"""How long the end of a source is waited for."""
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
    """An open source, and the object and credentials that it was opened with.

    Attributes:
        identity: uid and spec of the object, and the credentials; another identity needs another source.
        used_at_s: when the latest read began, by the monotonic clock.
    """

    source: ExternalSource
    identity: tuple[str, Mapping[str, Any], Mapping[str, str]]
    used_at_s: float


@dataclass(frozen=True, slots=True)
class _Timeouts:
    """The latest reads of an object had no response in time.

    Attributes:
        identity: uid and spec of the object.
        query: the query of the latest read.
        count: the number of such reads in a row.
        until_s: reads before this instant of the monotonic clock fail at once.
    """

    identity: tuple[str, Mapping[str, Any]]
    query: str
    count: int
    until_s: float

    @property
    def backoff_s(self) -> float:
        """How long the object is not read."""
        return 0.0 if self.count < 2 else min(BACKOFF_FIRST_S * 2.0 ** min(self.count - 2, 10), BACKOFF_MAX_S)


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
        self._open: dict[Key, _OpenSource] = {}
        self._slots = FairSlots(clock, total=CONCURRENT_READS, group_max=NAMESPACE_READS, wait_max_s=WAIT_MAX_S)
        self._timeouts: dict[Key, _Timeouts] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def read(self, source: MetricSource) -> ReadResult:
        """Read the source; the result has its value or an error."""
        self._close_idle()
        attempt = _Attempt(source)
        error: SourceError | None = None
        try:
            spec = metric_source.parse_spec(source.spec)
            value_milli = await self._read_in_turn(attempt, spec)
        except SourceError as failure:
            value_milli, error = None, type(failure)(credentials.redacted(str(failure), attempt.credentials.values()))
        except Exception as failure:
            failure_text = f"{type(failure).__name__}: {failure}"
            value_milli, error = None, SourceError(credentials.redacted(failure_text, attempt.credentials.values()))
        if error is not None and not isinstance(error, InvalidValue):
            self.discard(key_of(source))
        return ReadResult(attempt.query, value_milli, error, self._clock.now_ns())

    def discard(self, key: Key) -> None:
        """Close the source of that object in the background, if it is open."""
        open_source = self._open.pop(key, None)
        if open_source is not None:
            task = asyncio.get_running_loop().create_task(self._close_in_time(open_source.source))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all sources; return when they are closed, or after CLOSE_TIMEOUT_S."""
        for key in list(self._open):
            self.discard(key)
        await asyncio.gather(*self._closing)

    async def _read_in_turn(self, attempt: "_Attempt", spec: SourceSpec) -> int:
        """The value after a slot was free, by rules 1, 2 and 5. Raises SourceError, and what the source raises."""
        source, key, namespace = attempt.source, key_of(attempt.source), attempt.source.metadata.namespace
        identity, earlier_timeouts = (source.metadata.uid, source.spec), self._timeouts.get(key)
        if earlier_timeouts is not None and earlier_timeouts.identity != identity:
            earlier_timeouts = None
        if earlier_timeouts is not None and self._clock.monotonic_s() < earlier_timeouts.until_s:
            attempt.query = earlier_timeouts.query
            raise ReadTimeout(
                f"no response within {spec.timeout_s:g} s, {earlier_timeouts.count} times:"
                f" it is read again after {earlier_timeouts.backoff_s:g} s"
            )
        await self._slots.take(namespace)
        self._timeouts.pop(key, None)
        work = self._read_milli(attempt, spec)
        try:
            return await self._within(work, spec.timeout_s, on_end=lambda: self._slots.release(namespace))
        except (ReadTimeout, TimeoutError):
            count = earlier_timeouts.count + 1 if earlier_timeouts is not None else 1
            latest_timeouts = _Timeouts(identity, attempt.query, count, 0.0)
            self._timeouts[key] = replace(
                latest_timeouts, until_s=self._clock.monotonic_s() + latest_timeouts.backoff_s
            )
            raise

    async def _read_milli(self, attempt: "_Attempt", spec: SourceSpec) -> int:
        """The value in thousandths, read with current credentials. Raises SourceError, and what the source raises."""
        namespace = attempt.source.metadata.namespace
        attempt.credentials = await credentials.read(self._client, namespace, spec.credentials)
        opened = await self._opened(attempt, spec)
        opened.used_at_s = self._clock.monotonic_s()
        attempt.query = credentials.redacted(opened.source.query, attempt.credentials.values())
        return metric_numbers.milli_of(await opened.source.read())

    async def _opened(self, attempt: "_Attempt", spec: SourceSpec) -> _OpenSource:
        """The open source of the object, opened now if there is none for this spec and these credentials."""
        source, key = attempt.source, key_of(attempt.source)
        identity = (source.metadata.uid, source.spec, attempt.credentials)
        open_source = self._open.get(key)
        if open_source is not None and open_source.identity == identity:
            return open_source
        self.discard(key)
        config = SourceConfig(
            spec.settings, self._clock, attempt.credentials, spec.tls, timeout_s=spec.timeout_s, folder=self._folder
        )
        new_source = await asyncio.to_thread(self._make, spec, config)
        opened = self._open[key] = _OpenSource(new_source, identity, self._clock.monotonic_s())
        return opened

    def _make(self, spec: SourceSpec, config: SourceConfig) -> ExternalSource:
        return self._find_factory(spec.type, spec.is_custom)(config)

    async def _within(
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
        for key in [key for key, source in self._open.items() if source.used_at_s < oldest_s]:
            self.discard(key)
        for key in [key for key, timeouts in self._timeouts.items() if timeouts.until_s < oldest_s]:
            del self._timeouts[key]

    async def _close_in_time(self, source: ExternalSource) -> None:
        """Close a source, for at most CLOSE_TIMEOUT_S; a failure is logged."""
        try:
            await self._within(_call_close(source), CLOSE_TIMEOUT_S)
        except Exception as error:  # the text may have credentials
            log.debug("a source could not be closed: %s", type(error).__name__)


class _Attempt:
    """The state of one read: the query and the credentials, as far as they are known when it fails."""

    def __init__(self, source: MetricSource) -> None:
        self.source = source
        self.query = ""
        self.credentials: dict[str, str] = {}


async def _call_close(source: ExternalSource) -> None:
    await source.close()


def _cancel(task: "asyncio.Future[Any]") -> None:
    """Cancel a task that nothing waits for any more, and retrieve its exception."""
    task.cancel()
    task.add_done_callback(lambda ended_task: ended_task.cancelled() or ended_task.exception())
