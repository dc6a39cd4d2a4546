"""Defines the parameters of a leader election: names of Leases, durations, this process's identity, number of shards.

`podscaler controller` makes one from its flags. Two processes with different numbers of shards must not work at the
same time: each first writes a Lease with its number of shards, and then reads whether one with another number is live
(`conflicting_holders`). Whichever writes second reads the Lease of the first. A further parameter: an attribute of
Election, and a flag in `podscaler.cli.options.election`.

Source: client-go's leader election; component-base's LeaderElectionConfiguration and its validation (the durations).
"""

import hashlib
import socket
import uuid
from dataclasses import dataclass, field

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.controller.leaderelection import lease, timeouts
from podscaler.controller.leaderelection.lease import LeaseLock
from podscaler.controller.leaderelection.lease_informer import LeaseInformer
from podscaler.kube.client.client import Client

NAME = lease.NAME
NAMESPACE = lease.NAMESPACE
JITTER_FACTOR = 1.2
"""A candidate waits up to so many retry periods longer, at random."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The three durations of a leader election.

    Attributes:
        lease_duration_s: how long others wait after the last renewal that they saw; a Lease has it in whole seconds.
        renew_deadline_s: how long after its last renewal a holder may act, and how long it tries to renew.
        retry_period_s: the wait between two tries.
    """

    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        """Raises UsageError for durations with which two processes could hold the lease at once, or none could."""
        if self.lease_duration_s < 1 or self.renew_deadline_s <= 0 or self.retry_period_s <= 0:
            raise UsageError(
                "--leader-elect-lease-duration must be at least 1s, and --leader-elect-renew-deadline and "
                "--leader-elect-retry-period greater than zero"
            )
        if int(self.lease_duration_s) <= self.renew_deadline_s:
            raise UsageError(
                "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline, in whole seconds"
            )
        if self.renew_deadline_s <= self.retry_period_s * JITTER_FACTOR:
            raise UsageError(
                f"--leader-elect-renew-deadline must be greater than {JITTER_FACTOR} times --leader-elect-retry-period"
            )

    @property
    def attempt_s(self) -> float:
        """How long one attempt may take."""
        return self.renew_deadline_s / 2


def make_identity() -> str:
    """The identity of this process: `<hostname>_<uuid>`."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Election:
    """The parameters of one leader election.

    Attributes:
        name: the name of a single leader's Lease; the names of the Leases of shards and members begin with it.
        namespace: the namespace of the Leases.
        timing: the durations.
        shards: the number of shards; 0: a single leader.
        identity: the unique identity of this process.
    """

    name: str = NAME
    namespace: str = NAMESPACE
    timing: Timing = field(default_factory=Timing)
    shards: int = 0
    identity: str = field(default_factory=make_identity)

    def shard_name(self, shard: int) -> str:
        """The name of the Lease of a shard."""
        return lease.shard_name(self.name, shard)

    @property
    def member_name(self) -> str:
        """The name of the Lease by which this process is a member."""
        return f"{self.name}-member-{hashlib.sha256(self.identity.encode()).hexdigest()[:10]}"

    def is_member(self, name: str) -> bool:
        """Whether a Lease of that name is the Lease of a member."""
        return name.startswith(f"{self.name}-member-")

    def lock(self, client: Client, name: str) -> LeaseLock:
        """The lock of the Lease of that name."""
        return LeaseLock(client, namespace=self.namespace, name=name, election=self.name, shards=self.shards)

    async def find_conflict(self, leases: LeaseInformer, clock: Clock) -> str:
        """The identities of `conflicting_holders`; empty if there are none; `unknown (...)`: no Lease can be read."""
        try:
            holders = await timeouts.within(clock, self.timing.attempt_s, self.conflicting_holders(leases, clock))
        except StatusError as error:
            return f"unknown ({error})"
        return ", ".join(holders)

    async def conflicting_holders(self, leases: LeaseInformer, clock: Clock) -> list[str]:
        """Read the Leases; the identities of live holders with another number of shards, sorted. Raises StatusError."""
        await leases.refresh()
        now_s, our_shards = clock.monotonic_s(), str(self.shards)
        live_leases = (observed.lease for observed in leases if observed.is_live(now_s))
        return sorted({live_lease.record.holder for live_lease in live_leases if live_lease.shards != our_shards})
