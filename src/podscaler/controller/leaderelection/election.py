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
from podscaler.controller.leaderelection import lease
from podscaler.controller.leaderelection.lease_informer import LeaseInformer
from podscaler.controller.leaderelection.lease_lock import LeaseLock
from podscaler.controller.leaderelection.timing import Timing
from podscaler.kube.client.client import Client

NAME = lease.NAME
NAMESPACE = lease.NAMESPACE


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
