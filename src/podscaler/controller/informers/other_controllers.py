"""Detects other controllers that write the status of the same autoscalers, by their field managers.

`autoscaler_informer` calls `note` with each object that changed, which reads metadata.managedFields;
`podscaler.controller.coexistence.standby.WriteGate` calls `update_competing` before anything is written about an
autoscaler. `podscaler explain` and `podscaler migrate` use `status_writes` and `is_built_in_alive` alone. Rules:

1. Every manager but our own is another controller, except kubectl (a person writes by hand) and a migration. Another
   installation of podscaler has another manager (`podscaler.controller.options.installation`).
2. It competes for the autoscalers whose status it writes repeatedly: twice within RECENT_S. One write of a controller
   that is known by its name, the built-in one or another installation of podscaler, is enough. It does not compete for
   any other autoscaler.
3. It competes no more when it has not written for SILENCE_S and for PERIODS of its own periods, as they were observed.
   Silence counts only while there is something to write: if metrics do not change, no controller writes.
4. While kube-controller-manager renews its Lease the built-in controller may be at work: as long as its period is not
   known, its silence must last RECENT_S. Where the Lease has expired or is absent, all of its silence counts.
5. A write before the first list that is older than RECENT_S and than our own last one does not count: that controller
   was replaced by ours before.

Writes before the first list count from the API server's timestamp, later ones from when they were observed: the clocks
of two machines need not agree for that. A manager that is no controller is added to IGNORED_PREFIXES, one that counts
by its first write (rule 2) to `_is_known`.
"""

import logging
import statistics
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import msgspec

from podscaler.api.machinery import instants
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection import lease
from podscaler.controller.options import installation
from podscaler.kube.client.client import Client, is_not_found
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

IGNORED_PREFIXES = ("kubectl", installation.MIGRATION)
"""The beginnings of managers that are no controllers (rule 1)."""
BUILT_IN = "kube-controller-manager"
"""The manager of the built-in controller's writes, and the name of its Lease."""
SILENCE_S = 45.0
PERIODS = 3
RECENT_S = 300.0
LEASE_PERIOD_S = 10.0
"""How often the Lease is read once the built-in controller has written the status of a known autoscaler."""
CLOCKS_APART_S = 30
"""By how much the clock of the Lease's holder may be behind ours."""
_INTERVALS_MAX = 101
"""The latest intervals between writes of a manager, of which the median is its period (rule 3)."""


class _Entry(msgspec.Struct, gc=False, rename="camel"):
    """The fields of an element of metadata.managedFields that are read."""

    manager: str = ""
    subresource: str = ""
    time: str | None = None


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    """The fields of an autoscaler's metadata that are read."""

    namespace: str = ""
    name: str = ""
    managed_fields: list[_Entry] | None = None


class _AutoscalerMetadata(msgspec.Struct, gc=False):
    """An autoscaler, of which only the metadata are read."""

    metadata: _Meta


_METADATA_DECODER = msgspec.json.Decoder(_AutoscalerMetadata)


class StatusWrite(NamedTuple):
    """The last write of a status by one field manager, and the API server's timestamp of it (ns since the epoch)."""

    manager: str
    at_ns: int


def status_writes(object_json: msgspec.Raw | bytes) -> Iterator[StatusWrite]:
    """The writers of an object's status, by its metadata.managedFields. Raises ValueError."""
    return _parse_status_writes(_METADATA_DECODER.decode(object_json).metadata)


def _parse_status_writes(meta: _Meta) -> Iterator[StatusWrite]:
    """One StatusWrite for each entry of managedFields about the status. Raises ValueError for an invalid time."""
    for managed_fields_entry in meta.managed_fields or ():
        if managed_fields_entry.subresource == "status" and managed_fields_entry.time:
            yield StatusWrite(managed_fields_entry.manager, instants.parse(managed_fields_entry.time))


async def is_built_in_alive(client: Client, now_ns: int) -> bool:
    """Whether a kube-controller-manager renews its Lease. Raises StatusError, ValueError."""
    path = lease.path(lease.NAMESPACE, BUILT_IN)
    try:
        record = lease.parse(await client.get(path, subject=f"{lease.RESOURCE} {BUILT_IN}")).record
    except StatusError as error:
        if is_not_found(error):
            return False
        raise
    if not record.holder or not record.renewed_at:
        return False
    lasts_s = record.duration_s + CLOCKS_APART_S
    return now_ns < instants.parse(record.renewed_at) + lasts_s * NANOSECONDS


class _Life(Enum):
    """Whether the built-in controller is alive, by its Lease."""

    UNKNOWN = "unknown"
    ALIVE = "alive"
    DEAD = "dead"


@dataclass(slots=True)
class _Competitor:
    """One manager that wrote the status of one autoscaler.

    Attributes:
        stamped_ns: the API server's timestamp of its last write.
        observed_s: when its last write was observed, by the monotonic clock.
        competes: whether it wrote twice within RECENT_S, or is known by name (rule 2); not if ours replaced it (5).
        silent_since_s: since when there is something to write that it has not written; None if there is nothing.
    """

    stamped_ns: int
    observed_s: float
    competes: bool
    silent_since_s: float | None = None


class OtherControllers:
    """Detects other controllers by the module's rules, from the status writes of all autoscalers.

    Args:
        own: the field manager of this controller's own writes.
    """

    def __init__(self, client: Client, clock: Clock, *, own: str) -> None:
        self._client = client
        self._own = own
        self._clock = clock
        self._competitors_by_key: dict[Key, dict[str, _Competitor]] = {}
        self._intervals_s: dict[str, deque[float]] = {}
        self._managed_keys: set[Key] = set()
        self._competing_by_key: dict[Key, tuple[str, ...]] = {}
        self._key_counts: Counter[str] = Counter()  # for how many autoscalers each manager competes
        self._built_in = _Life.UNKNOWN
        self._lease_fault = ""
        self._is_listed = False

    def note(self, autoscaler_json: msgspec.Raw) -> None:
        """Read the status writes of an autoscaler, in JSON as the API server has it now. Raises ValueError."""
        meta = _METADATA_DECODER.decode(autoscaler_json).metadata
        competitors = self._competitors_by_key.setdefault((meta.namespace, meta.name), {})
        writes = list(_parse_status_writes(meta))
        own_write_ns = max((write.at_ns for write in writes if write.manager == self._own), default=0)
        for write in writes:
            if write.manager != self._own and not write.manager.startswith(IGNORED_PREFIXES):
                self._note_write(competitors, write, own_write_ns)

    def forget(self, key: Key) -> None:
        """The autoscaler was deleted."""
        self._competitors_by_key.pop(key, None)
        self.release(key)

    def release(self, key: Key) -> None:
        """Another process manages the autoscaler: the last result of `update_competing` does not count any more."""
        self._managed_keys.discard(key)
        self._set_competing(key, ())

    async def note_listed(self) -> None:
        """All autoscalers have been listed: later writes count from when they are observed."""
        self._is_listed = True
        await self._refresh_lease()

    async def run(self) -> None:
        """Read the Lease of kube-controller-manager regularly once it has written a status, until cancelled."""
        while True:
            await self._clock.sleep(LEASE_PERIOD_S)
            await self._refresh_lease()

    def update_competing(self, key: Key, *, has_change: bool) -> str:
        """The other controllers of the autoscaler, names joined by commas; empty if there are none.

        `all_competing` and `competes_everywhere` use the result, and count the autoscaler as managed by this process.

        Args:
            has_change: whether there is something to write about it now.
        """
        competitors, now_s = self._competitors_by_key.get(key, {}), self._clock.monotonic_s()
        names = sorted(
            name for name, competitor in competitors.items() if self._is_at_work(name, competitor, now_s, has_change)
        )
        self._managed_keys.add(key)
        self._set_competing(key, tuple(names))
        return ", ".join(names)

    def find_status_writer(self, key: Key) -> str:
        """The other controller that wrote the autoscaler's status last; empty if none is known."""
        competitors = self._competitors_by_key.get(key, {})
        return max(competitors, key=lambda manager: competitors[manager].stamped_ns, default="")

    @property
    def all_competing(self) -> str:
        """The other controllers of any managed autoscaler, as of the last calls of `update_competing`; empty: none."""
        return ", ".join(sorted(self._key_counts))

    @property
    def competes_everywhere(self) -> bool:
        """Whether every managed autoscaler has another controller, and there is at least one autoscaler."""
        return bool(self._managed_keys) and len(self._competing_by_key) == len(self._managed_keys)

    def _set_competing(self, key: Key, names: tuple[str, ...]) -> None:
        """Remember the other controllers of an autoscaler, and count their names."""
        earlier_names = self._competing_by_key.pop(key, ())
        if names:
            self._competing_by_key[key] = names
        if names != earlier_names:
            self._key_counts.update(names)
            self._key_counts.subtract(earlier_names)
            for name in earlier_names:
                if not self._key_counts[name]:
                    del self._key_counts[name]

    def _is_at_work(self, manager: str, competitor: _Competitor, now_s: float, has_change: bool) -> bool:
        """Whether a competitor is active (rules 2 to 4); begins its silence with `has_change`, and ends it without."""
        if not competitor.competes:
            return False
        if not has_change:
            competitor.silent_since_s = None
        elif competitor.silent_since_s is None:
            competitor.silent_since_s = now_s
        is_dead = manager == BUILT_IN and self._built_in is _Life.DEAD
        # where the Lease has expired, all of its silence counts (rule 4)
        counted_from_s = competitor.observed_s if is_dead else competitor.silent_since_s
        return counted_from_s is None or now_s - counted_from_s < self._silence_s(manager)

    def _silence_s(self, manager: str) -> float:
        """After how many seconds without a write a manager counts as stopped."""
        if intervals_s := self._intervals_s.get(manager):
            return max(SILENCE_S, PERIODS * statistics.median(intervals_s))
        return RECENT_S if manager == BUILT_IN and self._built_in is _Life.ALIVE else SILENCE_S

    def _note_write(self, competitors: dict[str, _Competitor], write: StatusWrite, own_write_ns: int) -> None:
        """Take note of a manager's status write; `own_write_ns` is the time of our own last write (0: none)."""
        now_s, competitor = self._clock.monotonic_s(), competitors.get(write.manager)
        if competitor is None:  # its first write that is observed: by the API server's timestamp before the first list
            age_s = 0.0 if self._is_listed else max(self._clock.now_ns() - write.at_ns, 0) / NANOSECONDS
            is_replaced = age_s > RECENT_S and own_write_ns > write.at_ns
            competes = not is_replaced and _is_known(write.manager)
            competitors[write.manager] = _Competitor(write.at_ns, now_s - age_s, competes)
        elif write.at_ns > competitor.stamped_ns:  # a new write; otherwise something else of the object changed
            interval_s = now_s - competitor.observed_s
            if interval_s <= RECENT_S:
                self._intervals_s.setdefault(write.manager, deque(maxlen=_INTERVALS_MAX)).append(interval_s)
            competitor.competes = _is_known(write.manager) or interval_s <= RECENT_S
            competitor.stamped_ns, competitor.observed_s, competitor.silent_since_s = write.at_ns, now_s, None

    async def _refresh_lease(self) -> None:
        """Read whether kube-controller-manager is alive, once it has written the status of a known autoscaler."""
        if not any(BUILT_IN in competitors for competitors in self._competitors_by_key.values()):
            return
        try:
            is_alive = await is_built_in_alive(self._client, self._clock.now_ns())
            self._built_in, self._lease_fault = _Life.ALIVE if is_alive else _Life.DEAD, ""
        except (StatusError, ValueError) as error:
            if str(error) != self._lease_fault:
                log.info("whether %s is alive is not known: %s", BUILT_IN, error)
            self._built_in, self._lease_fault = _Life.UNKNOWN, str(error)


def _is_known(manager: str) -> bool:
    """Whether the name of a manager is that of a controller of autoscalers."""
    return manager == BUILT_IN or manager.startswith(installation.MANAGER)
