"""Defines the stored form of one autoscaler's history, and the rules by which a later process continues from it.

`podscaler.controller.history.config_map_store` writes and reads records. A process calls `restored` with the record of
an autoscaler, and `resumed` once it has read the scale; `podscaler explain` calls `current` while the writer is at
work. A record holds the compacted history (`podscaler.core.model.stored_history`) as of its last change. A
recommendation that every sync renews is no change: the record marks it as renewed (`goes_on`), and the heartbeat of its
writer tells until when. So a steady autoscaler costs no writes. A new field of records: in HistoryRecord,
`_WireRecord`, `encode`, `decode`, `is_as_good` and `stored_map.record_of`; a controller without it takes a record that
has it as invalid.

Source: docs/decisions/history.md.
"""

import hashlib
from typing import NamedTuple

import msgspec

from podscaler.api.machinery import instants
from podscaler.api.machinery.meta import Wire
from podscaler.api.typed import recording
from podscaler.base.clock import NANOSECONDS
from podscaler.core import replay
from podscaler.core.model import stored_history
from podscaler.core.model.history import History, Recommendation
from podscaler.kube.informers.cache import Key

HEARTBEAT_S = 60
"""The period of heartbeats."""
LAZY_S = 50
"""How long a change may wait that is not urgent, not counting the ten seconds between two checks."""
UNSAVED_NS = 60 * NANOSECONDS
"""By how much an instant in a record may be behind when its writer is killed."""
SKEW_MAX_NS = 300 * NANOSECONDS
"""How far the clocks of two machines may be apart before a record counts as invalid."""

DATA_KEY_MAX = 253
"""The longest key that the API server admits in a ConfigMap's data."""


class HistoryRecord(msgspec.Struct, frozen=True):
    """The stored history of an autoscaler; instants are ns since the epoch.

    Attributes:
        uid: the object's uid; an object of the same name with another uid is another autoscaler.
        writer: the name of the process that wrote the record.
        saved_at: when the record was made.
        history: the compacted history.
        replicas: the target's replicas after the sync; None: not known.
        goes_on: whether every sync renews the newest recommendation.
        rescaled_from: the target's replicas before a rescale to `replicas` that is about to be written; None if there
            was no rescale, or it was written.
    """

    uid: str
    writer: str
    saved_at: int
    history: History
    replicas: int | None = None
    goes_on: bool = False
    rescaled_from: int | None = None


class Heartbeat(msgspec.Struct, frozen=True):
    """The latest heartbeat of a writer; `ended`: it has stopped, and its records are complete."""

    at: int
    ended: bool = False


class RestoredHistory(NamedTuple):
    """The history that an earlier process left.

    Attributes:
        history: the history to continue with.
        replicas: the target's replicas at the end; None: not known.
        rescaled_from: the target's replicas before, where it is not certain that `replicas` was written; None if it is
            certain.
        is_complete: whether the writer stopped in order, so that nothing is missing.
    """

    history: History
    replicas: int | None
    rescaled_from: int | None = None
    is_complete: bool = False


class _WireRecord(Wire, frozen=True, forbid_unknown_fields=True):
    """The JSON form of a HistoryRecord; instants are RFC 3339."""

    uid: str
    writer: str
    saved_at: str
    history: recording.RecordedHistory = recording.RecordedHistory()
    replicas: int | None = None
    goes_on: bool = False
    rescaled_from: int | None = None


class _WireHeartbeat(Wire, frozen=True, forbid_unknown_fields=True):
    """The JSON form of a Heartbeat."""

    at: str
    ended: bool = False


_RECORD = msgspec.json.Decoder(_WireRecord)
_HEARTBEAT = msgspec.json.Decoder(_WireHeartbeat)
_ENCODER = msgspec.json.Encoder()


def encode(record: HistoryRecord) -> str:
    """A record as JSON, the value of its entry in a ConfigMap."""
    history = replay.write_history(record.history)
    saved_at = instants.exact(record.saved_at)
    wire = _WireRecord(
        uid=record.uid,
        writer=record.writer,
        saved_at=saved_at,
        history=history,
        replicas=record.replicas,
        goes_on=record.goes_on,
        rescaled_from=record.rescaled_from,
    )
    return _ENCODER.encode(wire).decode()


def decode(record_json: str) -> HistoryRecord:
    """The record in the JSON that `encode` wrote. Raises ValueError for an invalid one."""
    wire = _RECORD.decode(record_json)
    history, saved_at = replay.read_history(wire.history), instants.parse(wire.saved_at)
    return HistoryRecord(
        uid=wire.uid,
        writer=wire.writer,
        saved_at=saved_at,
        history=history,
        replicas=wire.replicas,
        goes_on=wire.goes_on,
        rescaled_from=wire.rescaled_from,
    )


def encode_heartbeat(heartbeat: Heartbeat) -> str:
    """A heartbeat as JSON, the value of its entry in a ConfigMap."""
    return _ENCODER.encode(_WireHeartbeat(instants.exact(heartbeat.at), heartbeat.ended)).decode()


def decode_heartbeat(heartbeat_json: str) -> Heartbeat:
    """The heartbeat in the JSON that `encode_heartbeat` wrote. Raises ValueError for an invalid one."""
    wire = _HEARTBEAT.decode(heartbeat_json)
    return Heartbeat(instants.parse(wire.at), wire.ended)


def is_as_good(stored_record: HistoryRecord, latest: HistoryRecord) -> bool:
    """Whether a stored record need not be replaced by the latest.

    The record of a rescale that was about to be written is as good as the record of one that was: the target has the
    replicas.
    """
    return (stored_record.uid, stored_record.writer, stored_record.replicas, stored_record.goes_on) == (
        latest.uid,
        latest.writer,
        latest.replicas,
        latest.goes_on,
    ) and stored_history.is_equivalent(stored_record.history, latest.history, is_renewed=latest.goes_on)


def prolongs(stored_record: HistoryRecord, history: History, *, replicas: int, at: int) -> bool:
    """Whether the recommendation of a sync holds the replicas for a minute longer than a stored record does.

    A recommendation above the replicas holds them against a scale-down, one below against a scale-up.

    Args:
        stored_record: the record that a later process would read after a kill.
        history: the history after the sync.
        replicas: the target's replicas.
        at: the instant of the sync, in ns since the epoch.
    """
    latest = next(
        (recommendation.replicas for recommendation in history.recommendations if recommendation.at == at), None
    )
    if latest is None:
        return False
    stored = stored_record.history.recommendations
    recent_replicas = [recommendation.replicas for recommendation in stored if recommendation.at >= at - UNSAVED_NS]
    if stored_record.goes_on:  # the newest one was renewed since
        recent_replicas += [recommendation.replicas for recommendation in stored[-1:]]
    holds_scale_down = any(recent >= min(latest, replicas) for recent in recent_replicas)
    holds_scale_up = any(recent <= max(latest, replicas) for recent in recent_replicas)
    return not (holds_scale_down and holds_scale_up)


def lacks_failure(stored_record: HistoryRecord, history: History, *, at: int) -> bool:
    """Whether a failure of metrics began after the stored record, so that a later process would lack the last values.

    Args:
        stored_record: the record that a later process would read after a kill.
        history: the history after the sync.
        at: the instant of the sync (ns since the epoch), at which metrics that could be read were renewed.
    """
    failing = {last_proposal for last_proposal in history.last_proposals if last_proposal.at < at}
    begins = history.unread_since is not None and history.unread_since != stored_record.history.unread_since
    return begins or not failing <= set(stored_record.history.last_proposals)


def is_from_future(record: HistoryRecord, now_ns: int) -> bool:
    """Whether a record was saved more than SKEW_MAX_NS later than now, which makes it invalid."""
    return record.saved_at > now_ns + SKEW_MAX_NS


def alive_until(record: HistoryRecord, heartbeat: Heartbeat | None, now_ns: int) -> int:
    """Until when the writer may have continued without a change that it had to save, in ns since the epoch."""
    if heartbeat is not None and heartbeat.ended:
        return min(record.saved_at, now_ns)
    last_at = record.saved_at if heartbeat is None else max(record.saved_at, heartbeat.at)
    return min(last_at + HEARTBEAT_S * NANOSECONDS, now_ns)


def restored(record: HistoryRecord, heartbeat: Heartbeat | None, now_ns: int) -> RestoredHistory:
    """The history that a process continues with, from a record and the heartbeat of its writer (None: none)."""
    is_complete = heartbeat is not None and heartbeat.ended
    return RestoredHistory(continued(record, heartbeat, now_ns), record.replicas, record.rescaled_from, is_complete)


def resumed(restored_history: RestoredHistory, present_replicas: int, now_ns: int, *, has_behavior: bool) -> History:
    """The history to continue with, once the replicas of the target are known.

    * A rescale that was stored and never written is removed.
    * Where the target has other replicas than at the end, the cause is unknown: they count as recommended now, as for
      an autoscaler that is synced for the first time. Where it has fewer, it was scaled down after the record, when
      higher recommendations did not count any more: they do not count now.
    * After a kill it is unknown how long ago recommendations ended, so they count as younger than they may be: that may
      hold the replicas of the target, but not raise them. So higher ones count as those replicas.

    Args:
        present_replicas: the replicas of the target.
        has_behavior: whether the spec has a `behavior`, with which no recommendation of the past scales up. Then higher
            ones stay, as they may not hold back a scale-up as lower ones would.
    """
    history, last_replicas = restored_history.history, restored_history.replicas
    if last_replicas is not None and restored_history.rescaled_from == present_replicas:
        history = stored_history.without_change(history, last_replicas - present_replicas)
        last_replicas = present_replicas
    is_scaled_down = last_replicas is not None and present_replicas < last_replicas
    if is_scaled_down or not (restored_history.is_complete or has_behavior):
        history = stored_history.at_most(history, present_replicas)
    if last_replicas in (None, present_replicas):
        return history
    return stored_history.merged(history, History(recommendations=(Recommendation(present_replicas, now_ns),)))


def continued(record: HistoryRecord, heartbeat: Heartbeat | None, now_ns: int) -> History:
    """The history of a record to continue with.

    After an orderly end it is what was saved. After a kill the last changes may be missing: recommendations count as a
    minute younger than they were saved, as each may have been repeated, and a renewed one as renewed for up to a minute
    after the last heartbeat, which may have been a minute after its end. So no window is cut short, and some last up to
    two minutes longer.
    """
    history = stored_history.not_after(record.history, now_ns)
    if heartbeat is not None and heartbeat.ended:
        return history
    until = alive_until(record, heartbeat, now_ns)
    history = stored_history.with_later_recommendations(history, UNSAVED_NS, until)
    return stored_history.renewed(history, until) if record.goes_on else history


def current(record: HistoryRecord, heartbeat: Heartbeat | None, now_ns: int) -> History:
    """The history of a record whose writer is at work: as saved, with a renewed recommendation up to now."""
    history = stored_history.not_after(record.history, now_ns)
    return stored_history.renewed(history, alive_until(record, heartbeat, now_ns)) if record.goes_on else history


def data_key(key: Key) -> str:
    """The key in a ConfigMap's data: `namespace.name`, as a namespace has no dot; a hash where that is too long.

    The slash in keys of PodAutoscalers becomes two dots, which no name of an object has.
    """
    namespace, name = key
    plain_key = f"{namespace}.{name.replace('/', '..')}"
    if len(plain_key) <= DATA_KEY_MAX:
        return plain_key
    return f"{namespace}.{hashlib.sha256(name.encode()).hexdigest()}"
