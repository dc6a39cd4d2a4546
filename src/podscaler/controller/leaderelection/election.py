"""What is elected: names, durations, who we are, and into how many shards the work is split.

`podscaler controller` makes one from its flags. Two processes that split the work in different ways must not be at work
at the same time: each first says of itself that it is there, in a Lease with its number of shards, and then looks
whether one with another number is (`others`). Whoever says so second sees the first.
"""

import hashlib
import socket
import uuid
from dataclasses import dataclass, field

from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError
from podscaler.controller.leaderelection import lease
from podscaler.controller.leaderelection.lease_informer import LeaseInformer
from podscaler.controller.leaderelection.lease_lock import LeaseLock
from podscaler.kube.client.client import Client

NAME = lease.NAME
NAMESPACE = lease.NAMESPACE
JITTER_FACTOR = 1.2
"""By how much of itself a candidate's wait may be longer, at random."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The three durations, in seconds.

    Attributes:
        lease_duration_s: how long others wait after the last renewal that they saw. The lease holds whole seconds.
        renew_deadline_s: how long after its last renewal a holder may act, and how long it tries to renew.
        retry_period_s: the wait between two tries.
    """

    lease_duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0

    def __post_init__(self) -> None:
        """Raises UsageError for durations with which two could act at once, or nobody."""
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
        """How long one try may take."""
        return self.renew_deadline_s / 2


def make_identity() -> str:
    """Who we are: `<hostname>_<uuid>`, another for each process."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class Election:
    """See the module.

    Attributes:
        name: of the Lease, and the beginning of the names of those of shards and members.
        namespace: the Leases'.
        timing: the durations.
        shards: how many; 0: one controller does everything.
        identity: ours.
    """

    name: str = NAME
    namespace: str = NAMESPACE
    timing: Timing = field(default_factory=Timing)
    shards: int = 0
    identity: str = field(default_factory=make_identity)

    def shard_name(self, shard: int) -> str:
        """Of the Lease of a shard."""
        return lease.shard_name(self.name, shard)

    @property
    def member_name(self) -> str:
        """Of our own Lease."""
        return f"{self.name}-member-{hashlib.sha256(self.identity.encode()).hexdigest()[:10]}"

    def is_member(self, name: str) -> bool:
        """Whether the Lease of that name is one of a member."""
        return name.startswith(f"{self.name}-member-")

    def lock(self, client: Client, name: str) -> LeaseLock:
        """One of the Leases."""
        return LeaseLock(client, namespace=self.namespace, name=name, election=self.name, shards=self.shards)

    async def others(self, roster: LeaseInformer, clock: Clock) -> list[str]:
        """Who is at work now and splits the work in another way, in order. Raises StatusError."""
        await roster.look()
        now_s, ours = clock.monotonic_s(), str(self.shards)
        live = (seen.lease for seen in roster if seen.is_live(now_s))
        return sorted({each.record.holder for each in live if each.shards != ours})
