"""Acquires and renews one lease: client-go's leader election, step by step.

A LeaseHolder acquires (`attempt`), renews (`hold`) and releases the lease (`release`). Rules:

1. Clocks of two machines are never compared: a lease has expired when its record has not changed for its duration by
   the local monotonic clock. A record from a watch (`observe`) counts like one from a GET.
2. Of several candidates, the API server accepts one: an update names the resourceVersion that was read.
3. The holder's right to write is its `write_lease`, which ends before the lease can expire for any other process.
4. A holder whose lease may have expired for others has lost it, even if no process acquired it: others may have
   started to work because it seemed to be expired. It must acquire the lease again.

Differs from client-go: rule 4; a holder that sees another holder stops at once, and not at its renew deadline; a Lease
that was deleted while another process held it is not created again before that lease would have expired.

Source: k8s.io/client-go/tools/leaderelection (documentation and behaviour of v1.37); docs/spec/controller.md 11 (Leader
election).
"""

import logging
import math
from typing import Protocol

import msgspec

from podscaler.base.clock import Clock, rfc3339_micro
from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection import timeouts, write_lease
from podscaler.controller.leaderelection.election import Timing
from podscaler.controller.leaderelection.lease import LeaderElectionRecord, LeaseLock
from podscaler.controller.leaderelection.write_lease import WriteLease
from podscaler.kube.transport.transport import TransportError

log = logging.getLogger(__name__)


class RenewalObserver(Protocol):
    """Counts renewals that need more than one request."""

    def slow_path(self, name: str) -> None:
        """A holder had to read its lease before it renewed it."""
        ...


class Elector:
    """Acquires, renews and releases one lease, by the module's rules.

    Args:
        lock: reads and writes the Lease.
        timing: the durations.
        identity: the unique identity of this process.
        telemetry: counts renewals that need more than one request.
        within: a write lease that bounds this one's; None if there is none.
    """

    def __init__(
        self,
        lock: LeaseLock,
        timing: Timing,
        *,
        identity: str,
        clock: Clock,
        telemetry: RenewalObserver,
        within: WriteLease | None = None,
    ) -> None:
        self.lock = lock
        self.identity = identity
        self.write_lease = WriteLease(clock, within)
        self._validity = WriteLease(clock)
        """How long the lease cannot have expired for others: its duration, which is longer than `write_lease`."""
        self._timing = timing
        self._clock = clock
        self._telemetry = telemetry
        self._observed: LeaderElectionRecord | None = None
        self._observed_at_s = -math.inf
        self._logged_holder = ""
        self._logged_error = ""

    @property
    def is_leader(self) -> bool:
        """Whether this process is the holder in the last observed record."""
        return self._observed is not None and self._observed.holder == self.identity

    @property
    def holder(self) -> str:
        """The identity of the holder in the last observed record; empty if there is no holder."""
        return self._observed.holder if self._observed else ""

    @property
    def unrenewed_s(self) -> float:
        """Seconds since the last observed record changed."""
        return self._clock.monotonic_s() - self._observed_at_s

    def observe(self, record: LeaderElectionRecord, at_s: float) -> None:
        """Take a record that was observed at that instant of the monotonic clock; an older one is ignored."""
        if record != self._observed and at_s >= self._observed_at_s:
            self._observed, self._observed_at_s = record, at_s

    @property
    def expires_in_s(self) -> float:
        """Seconds until the lease expires if it is not renewed; 0 or less: it can be acquired now."""
        if self._observed is None or not self._observed.holder:
            return 0.0
        return self._observed_at_s + self._observed.duration_s - self._clock.monotonic_s()

    async def attempt(self) -> bool:
        """Try to acquire the lease once; returns whether this process holds it now."""
        begun = await self._attempt_within(self._timing.attempt_s)
        if begun is not None:
            self._prolong(begun)
        return begun is not None

    async def hold(self) -> None:
        """Renew the lease; return when that failed for the renew deadline, another holds it, or it has expired."""
        while True:
            await self._clock.sleep(self._timing.retry_period_s)
            deadline_s = self._clock.monotonic_s() + self._timing.renew_deadline_s
            while not await self._renew(deadline_s - self._clock.monotonic_s()):
                is_late = self._clock.monotonic_s() + self._timing.retry_period_s >= deadline_s
                if is_late or not self.is_leader or self._validity.remaining_s() <= 0:
                    log.error("failed to renew lease %s", self.lock)
                    self.write_lease.end()
                    return
                await self._clock.sleep(self._timing.retry_period_s)

    async def _renew(self, limit_s: float) -> bool:
        """Try to renew once; false also where the lease may have expired for others meanwhile (rule 4)."""
        begun = await self._attempt_within(min(limit_s, self._timing.attempt_s))
        if begun is None or self._validity.remaining_s() <= 0:
            return False
        self._prolong(begun)
        return True

    async def _attempt_within(self, limit_s: float) -> write_lease.ClockReading | None:
        """When the attempt began, if it succeeded; None if it failed or took too long."""
        begun = write_lease.now(self._clock)
        try:
            is_ours = await timeouts.within(self._clock, limit_s, self._acquire_or_renew(begun))
            if is_ours:
                self._logged_error = ""
        except StatusError as error:
            self._log_error(error)
            is_ours = False
        self._log_holder()
        return begun if is_ours else None

    def _prolong(self, begun: write_lease.ClockReading) -> None:
        self.write_lease.renew(begun, self._timing.renew_deadline_s)
        self._validity.renew(begun, int(self._timing.lease_duration_s))

    async def release(self) -> bool:
        """Release the lease, so that others need not wait; returns whether it is certain that this succeeded."""
        self.write_lease.end()
        try:
            return await timeouts.within(self._clock, self._timing.attempt_s, self._release_with_retry())
        except StatusError as error:
            log.warning("failed to release lease %s: %s", self.lock, error)
            return False

    async def _acquire_or_renew(self, begun: write_lease.ClockReading) -> bool:
        """Renew or acquire the lease, as `tryAcquireOrRenew` of client-go does; returns whether that succeeded."""
        new_record = self._new_record(begun.wall_ns)
        if self.is_leader and self._is_valid(begun.monotonic_s) and await self._renew_without_read(new_record):
            return True
        current_lease = await self.lock.get()
        if current_lease is None:
            if self._is_held_by_other(begun.monotonic_s):
                return False
            await self.lock.create(new_record)
            self._note_record(new_record)
            return True
        self.observe(current_lease, self._clock.monotonic_s())
        if self._is_held_by_other(begun.monotonic_s):
            return False
        if self.is_leader:
            self._telemetry.slow_path(self.lock.name)
        await self._update(
            new_record, current_lease, transitions=current_lease.transitions + (0 if self.is_leader else 1)
        )
        return True

    async def _renew_without_read(self, new_record: LeaderElectionRecord) -> bool:
        """Renew without reading the lease first; returns False if the lease was changed."""
        assert self._observed is not None
        try:
            await self._update(new_record, self._observed, transitions=self._observed.transitions)
        except StatusError as error:
            level = logging.DEBUG if isinstance(error, TransportError) or error.code == 401 else logging.INFO
            log.log(level, "lease %s is read again before it is renewed: %s", self.lock, error)
            return False
        return True

    async def _update(
        self, new_record: LeaderElectionRecord, current_lease: LeaderElectionRecord, *, transitions: int
    ) -> None:
        """Replace the record of the Lease by ours; the time of acquisition stays if we hold it. Raises StatusError."""
        acquired_at = current_lease.acquired_at if self.is_leader else new_record.acquired_at
        record = msgspec.structs.replace(new_record, acquired_at=acquired_at, transitions=transitions)
        await self.lock.update(record)
        self._note_record(record)

    async def _release_with_retry(self) -> bool:
        """Write a record without a holder; returns True. A conflict with a late renewal is tried once more."""
        try:
            return await self._write_released()
        except StatusError as error:
            if error.code != 409:
                raise
        return await self._write_released()

    async def _write_released(self) -> bool:
        """Write a record without a holder, unless another process holds the lease; returns True. Raises StatusError."""
        current_lease = await self.lock.get()
        if current_lease is None or current_lease.holder != self.identity:
            return True
        now_text = rfc3339_micro(self._clock.now_ns())
        record = LeaderElectionRecord(  # as client-go: no holder, and a duration that is over at once
            holder="",
            duration_s=1,
            acquired_at=now_text,
            renewed_at=now_text,
            transitions=current_lease.transitions,
        )
        await self.lock.update(record)
        self._note_record(record)
        return True

    def _new_record(self, now_ns: int) -> LeaderElectionRecord:
        """A record by which this process holds the lease from now on, before any transition."""
        now_text = rfc3339_micro(now_ns)
        return LeaderElectionRecord(
            holder=self.identity,
            duration_s=int(self._timing.lease_duration_s),
            acquired_at=now_text,
            renewed_at=now_text,
        )

    def _note_record(self, record: LeaderElectionRecord) -> None:
        """Keep the record that was observed now; its age counts from here."""
        self._observed, self._observed_at_s = record, self._clock.monotonic_s()

    def _is_valid(self, now_s: float) -> bool:
        """Whether the last observed record has not expired."""
        return self._observed is not None and self._observed_at_s + self._observed.duration_s > now_s

    def _is_held_by_other(self, now_s: float) -> bool:
        """Whether another process holds the lease, by the last observed record."""
        return bool(self.holder) and self._is_valid(now_s) and not self.is_leader

    def _log_error(self, error: StatusError) -> None:
        """Log a new error; conflicts at INFO, and at DEBUG what `server_health` logs for all requests."""
        level = logging.INFO if error.code == 409 else logging.WARNING
        is_reported = str(error) == self._logged_error or isinstance(error, TransportError) or error.code == 401
        log.log(logging.DEBUG if is_reported else level, "lease %s: %s", self.lock, error)
        self._logged_error = str(error)

    def _log_holder(self) -> None:
        """Log the holder of the Lease if it has changed since the last log line."""
        if self.holder != self._logged_holder:
            self._logged_holder = self.holder
            log.info("lease %s: %s", self.lock, f"held by {self.holder}" if self.holder else "held by nobody")
