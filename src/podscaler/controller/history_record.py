"""The record of one autoscaler's history as a text in a ConfigMap, and what it means when it is found.

`podscaler.controller.archive` writes and reads them. A record holds the essence of the history
(`podscaler.core.lasting_history`) as of its last change. A recommendation that every sync renews is no change: the
record says that it goes on, and the heartbeat of its writer tells until when. So a steady autoscaler costs no writes.

Source: docs/decisions/history.md.
"""

import hashlib
from typing import NamedTuple

import msgspec

from podscaler.api import instants, recording
from podscaler.api.meta import Wire
from podscaler.clock import NANOSECONDS
from podscaler.core import lasting_history, recorded_history
from podscaler.core.history import History
from podscaler.kube.cache import Key

HEARTBEAT_S = 60
"""How often a writer says that it is alive."""
LAZY_S = 50
"""How long a change that can wait may wait, but for the ten seconds between two looks."""
UNSAVED_NS = 2 * HEARTBEAT_S * NANOSECONDS
"""By how much a record may lag behind when its writer was killed."""
SKEW_MAX_NS = 300 * NANOSECONDS
"""How far the clocks of two machines may be apart before a record is taken for nonsense."""

DATA_KEY_MAX = 253


class Record(msgspec.Struct, frozen=True):
    """What is kept of an autoscaler.

    Attributes:
        uid: of the object; one of the same name with another uid is another autoscaler.
        writer: who wrote it.
        saved_at: when.
        history: the essence.
        replicas: what the target was left with; None where that is not known.
        goes_on: whether the newest recommendation is renewed by every sync.
    """

    uid: str
    writer: str
    saved_at: int
    history: History
    replicas: int | None = None
    goes_on: bool = False


class Beat(msgspec.Struct, frozen=True):
    """The latest sign of life of a writer; `ended` if everything was written before it ended."""

    at: int
    ended: bool = False


class Found(NamedTuple):
    """A history that was found, and what its target was left with (None: not known)."""

    history: History
    replicas: int | None


class _WireRecord(Wire, frozen=True, forbid_unknown_fields=True):
    """The text of a Record."""

    uid: str
    writer: str
    saved_at: str
    history: recording.History = recording.History()
    replicas: int | None = None
    goes_on: bool = False


class _WireBeat(Wire, frozen=True, forbid_unknown_fields=True):
    """The text of a Beat."""

    at: str
    ended: bool = False


_RECORD = msgspec.json.Decoder(_WireRecord)
_BEAT = msgspec.json.Decoder(_WireBeat)
_ENCODER = msgspec.json.Encoder()


def encode(record: Record) -> str:
    """The text of a record."""
    history = recorded_history.written(record.history)
    saved_at = instants.exact(record.saved_at)
    wire = _WireRecord(record.uid, record.writer, saved_at, history, record.replicas, record.goes_on)
    return _ENCODER.encode(wire).decode()


def decode(text: str) -> Record:
    """The record in a text. Raises ValueError where that is none."""
    wire = _RECORD.decode(text)
    history, saved_at = recorded_history.read(wire.history), instants.parse(wire.saved_at)
    return Record(wire.uid, wire.writer, saved_at, history, wire.replicas, wire.goes_on)


def encode_beat(beat: Beat) -> str:
    """The text of a beat."""
    return _ENCODER.encode(_WireBeat(instants.exact(beat.at), beat.ended)).decode()


def decode_beat(text: str) -> Beat:
    """The beat in a text. Raises ValueError where that is none."""
    wire = _BEAT.decode(text)
    return Beat(instants.parse(wire.at), wire.ended)


def is_as_good(kept: Record, latest: Record) -> bool:
    """Whether a kept record need not be replaced by the latest."""
    return (kept.uid, kept.writer, kept.replicas, kept.goes_on) == (
        latest.uid,
        latest.writer,
        latest.replicas,
        latest.goes_on,
    ) and lasting_history.is_as_good(kept.history, latest.history, goes_on=latest.goes_on)


def is_from_the_future(record: Record, now: int) -> bool:
    """Whether no sensible clock can have written it."""
    return record.saved_at > now + SKEW_MAX_NS


def alive_until(record: Record, beat: Beat | None, now: int) -> int:
    """Until when the writer may have gone on without a change that it had to save."""
    if beat is not None and beat.ended:
        return min(record.saved_at, now)
    last_at = record.saved_at if beat is None else max(record.saved_at, beat.at)
    return min(last_at + HEARTBEAT_S * NANOSECONDS, now)


def meant(record: Record, beat: Beat | None, now: int) -> History:
    """The history to go on with.

    After an orderly end it is what was saved. After a kill the last changes may be missing, so recommendations count as
    up to two minutes younger than they were saved: no window is cut short, some last a little longer.
    """
    history = lasting_history.not_after(record.history, now)
    if beat is not None and beat.ended:
        return history
    until = alive_until(record, beat, now)
    span = min(until - record.saved_at, UNSAVED_NS)
    if span > 0:
        history = lasting_history.younger(history, span, until)
    return lasting_history.going_on(history, until) if record.goes_on else history


def seen(record: Record, beat: Beat | None, now: int) -> History:
    """The history for a look at a writer that is at work: as saved, and what goes on goes on."""
    history = lasting_history.not_after(record.history, now)
    return lasting_history.going_on(history, alive_until(record, beat, now)) if record.goes_on else history


def data_key(key: Key) -> str:
    """The key in a ConfigMap's data: `namespace.name`, since a namespace has no dot; a hash where that is too long.

    The slash that keys of other kinds have becomes two dots, which no name has.
    """
    namespace, name = key
    text = f"{namespace}.{name.replace('/', '..')}"
    if len(text) <= DATA_KEY_MAX:
        return text
    return f"{namespace}.{hashlib.sha256(name.encode()).hexdigest()}"
