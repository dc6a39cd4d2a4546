"""Sends server-sent events to one viewer: changed rows, deleted autoscalers, points of one autoscaler, notices.

`podscaler.dashboard.server` runs one EventStream for each request of /api/stream. Theory of operation: a stream has a
position in the log of changes (`podscaler.observe.view_changes`) and one in the time line of the autoscaler that its
page shows; both are in the id of each event, so that a reconnection goes on where the stream ended. What changed since
is read from the log and the history when it is sent, so nothing is queued: a viewer that is slow gets fewer and later
events, with the latest state. Rules:

1. At most one round of events every ROUND_S.
2. A viewer that reads nothing for STALLED_S is disconnected. Its next stream begins with a notice.
3. A comment is sent every KEEP_ALIVE_S.
4. Rows of namespaces that the viewer may not see are never sent.

A new kind of event: in `_change_events`, and a handler of its name in static/app.js.

Source: the HTML standard, Server-sent events.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from aiohttp import web

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.controller.options.autoscaler_kinds import object_key
from podscaler.dashboard.sessions import Session, Sessions
from podscaler.kube.informers.cache import Key
from podscaler.observe.live_cluster import LiveCluster
from podscaler.observe.views import Gone, Notice

log = logging.getLogger(__name__)

ROUND_S = 0.15
POLL_S = 1.0
"""The longest wait for a change, after which notices and the end of the session are checked."""
KEEP_ALIVE_S = 15.0
STALLED_S = 20.0
OVERLAP_MS = 60_000
"""How much of the time line a new stream repeats; the page drops points that it has."""
ROWS_PER_EVENT = 200
_ENCODER = msgspec.json.Encoder()


@dataclass(slots=True)
class Position:
    """Where a stream is.

    Attributes:
        version: of the log of changes.
        at_ms: the last point of the time line that was sent, in milliseconds since the epoch.
    """

    version: int
    at_ms: int


def parse_position(text: str, boot_id: str) -> Position | None:
    """The position in an event's id of this server; None for any other text."""
    boot, *numbers = text.split(".")
    if boot != boot_id or len(numbers) != 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    return Position(int(numbers[0]), int(numbers[1]))


class EventStream:
    """The events for one viewer, until the connection or the session ends.

    Args:
        live_cluster: has the rows, their changes, and the time lines.
        sessions: has the rule for the end of a session.
        session: the session of the stream.
        boot_id: of this server process, for the ids of events.
        detail_key: the autoscaler whose time line is sent; None if no time line is sent.
    """

    def __init__(
        self,
        live_cluster: LiveCluster,
        sessions: Sessions,
        session: Session,
        clock: Clock,
        *,
        boot_id: str,
        detail_key: Key | None,
    ) -> None:
        self._live = live_cluster
        self._sessions = sessions
        self._session = session
        self._clock = clock
        self._boot_id = boot_id
        self._detail_key = detail_key
        self._sent_faults = ""  # the last text of `_connection_notices`; empty while there is no fault
        self._position = Position(0, 0)

    async def run(self, response: web.StreamResponse, start: Position | None) -> None:
        """Send events until the client disconnects or the session ends; counts as a stream of the session meanwhile.

        If the client reads nothing for STALLED_S, the stream ends and `session.was_slow` is set.

        Args:
            response: prepared already.
            start: where an earlier stream ended; None: all rows first.
        """
        now_ms = self._live.history.now_ms
        self._position = start or Position(0, now_ms - OVERLAP_MS)
        self._session.stream_count += 1
        try:
            with contextlib.suppress(ConnectionError):
                await self._send_all(response)
        except TimeoutError:
            self._session.was_slow = True
            log.info("a viewer of the dashboard reads nothing any more and is disconnected")
        finally:
            self._session.stream_count -= 1

    async def _send_all(self, response: web.StreamResponse) -> None:
        """Send events in rounds until the session is over."""
        sent_s = self._clock.monotonic_s()
        notices = [b": stream\n\n", *self._first_notices()]
        while not self._sessions.is_over(self._session):
            chunk = b"".join([*notices, *self._connection_notices(), *await self._change_events()])
            notices = []
            now_s = self._clock.monotonic_s()
            if not chunk and now_s - sent_s >= KEEP_ALIVE_S:
                chunk = b": keep-alive\n\n"
            if chunk:
                await _write(response, chunk)
                sent_s = self._clock.monotonic_s()
            await self._clock.sleep(ROUND_S)
            await self._wait_for_change()
        await _write(response, self._event("notice", Notice("error", "the session has expired: log in again")))

    async def _wait_for_change(self) -> None:
        """Wait for changes, but at most POLL_S: faults and the end of the session are no changes."""
        change_task = asyncio.ensure_future(self._live.changes.wait(self._position.version))
        sleep_task = asyncio.ensure_future(self._clock.sleep(POLL_S))
        try:
            await asyncio.wait((change_task, sleep_task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            change_task.cancel()
            sleep_task.cancel()

    async def _change_events(self) -> list[bytes]:
        """The events since the last round: changed rows, deleted autoscalers, the time line; moves the position."""
        changed_keys = self._live.changes.after(self._position.version)
        visible_changed = await self._filter_visible(changed_keys.changed)
        is_first = not self._position.version  # 0: all rows are sent, so there are no deletions and no gaps
        visible_gone = [] if is_first else await self._filter_visible(changed_keys.gone)
        is_complete = changed_keys.is_complete or is_first
        self._position.version = changed_keys.version
        timeline_change = None
        if self._detail_key is not None and await self._filter_visible([self._detail_key]):
            timeline_change = self._live.timeline_after(self._detail_key, self._position.at_ms)
        if timeline_change is not None:
            self._position.at_ms = timeline_change.timeline.at[-1]
        rows = [row for key in visible_changed if (row := self._live.find_row(key)) is not None]
        events = [
            self._event("rows", rows[first : first + ROWS_PER_EVENT]) for first in range(0, len(rows), ROWS_PER_EVENT)
        ]
        events += [self._event("gone", Gone(*object_key(key))) for key in visible_gone]
        if not is_complete:
            events.append(self._event("notice", Notice("info", "updates were missed: load the list again")))
        if timeline_change is not None:
            events.append(self._event("timeline", timeline_change))
        return events

    async def _filter_visible(self, keys: Sequence[Key]) -> list[Key]:
        """The keys of namespaces that the viewer may see; none if that is not known now."""
        is_visible: dict[str, bool] = {}
        for namespace in {namespace for namespace, _ in keys}:
            try:
                is_visible[namespace] = await self._session.viewer.may_see(namespace)
            except StatusError:
                is_visible[namespace] = False
        return [(namespace, name) for namespace, name in keys if is_visible[namespace]]

    def _first_notices(self) -> list[bytes]:
        """A notice if the stream before was too slow; `session.was_slow` is reset. Else empty."""
        if not self._session.was_slow:
            return []
        self._session.was_slow = False
        text = "the connection was too slow: updates were left out, and everything is current again"
        return [self._event("notice", Notice("warning", text))]

    def _connection_notices(self) -> list[bytes]:
        """A notice if the connection to the cluster was lost or restored since the last call; else empty."""
        faults = "; ".join(self._live.faults())
        if faults == self._sent_faults:
            return []
        self._sent_faults = faults
        notice = Notice("error", faults) if faults else Notice("info", "the API server responds again")
        return [self._event("notice", notice)]

    def _event(self, name: str, value: object) -> bytes:
        """One event in the format of the HTML standard; JSON has no line breaks."""
        position = self._position
        head = f"id: {self._boot_id}.{position.version}.{position.at_ms}\nevent: {name}\ndata: ".encode()
        return head + _ENCODER.encode(value) + b"\n\n"


async def _write(response: web.StreamResponse, chunk: bytes) -> None:
    """Write to the client. Raises TimeoutError if it reads nothing for STALLED_S, ConnectionError if it is gone."""
    async with asyncio.timeout(STALLED_S):
        await response.write(chunk)
