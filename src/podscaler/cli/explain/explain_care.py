"""Who looks after an autoscaler, as far as a cluster tells: who writes its status, and who holds the Lease for it.

`podscaler.cli.explain.explain_cluster` fills one in, `podscaler.cli.explain.explain` prints it. A controller without
leader election, or of another make, has no Lease of ours, and a Lease does not say which kinds of autoscalers its
holder looks after. So both are told, and nothing is concluded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podscaler.controller.informers.other_controllers import StatusWrite
from podscaler.controller.leaderelection.observed_holder import Holding
from podscaler.explain import wording
from podscaler.explain.line import Line, Section

TITLE = "Looked after"


@dataclass(frozen=True, slots=True)
class Care:
    """See the module; what is not known is None.

    Attributes:
        at: the instant of the look.
        waits: why its controller leaves a PodAutoscaler alone for now; empty where it does not.
        status: the last write of its status.
        lease: that of its shard, or of the lone leader.
        lease_namespace: where that is.
        differs: what the latest status says and this computation does not, a phrase each.
    """

    at: int
    waits: str = ""
    status: StatusWrite | None = None
    lease: Holding | None = None
    lease_namespace: str = ""
    differs: tuple[str, ...] = ()

    @property
    def section(self) -> Section | None:
        """For people; None where there is nothing to say."""
        lines = tuple(self._lines())
        return Section(TITLE, lines) if lines else None

    @property
    def data(self) -> dict[str, Any]:
        """For programs: what is known, instants in nanoseconds since the epoch."""
        value: dict[str, Any] = {"waits": self.waits} if self.waits else {}
        if self.differs:
            value["differs"] = list(self.differs)
        if self.status is not None:
            value["status"] = {"manager": self.status.manager, "at": self.status.at_ns}
        if self.lease is not None:
            value["lease"] = {
                "namespace": self.lease_namespace,
                "name": self.lease.name,
                "holder": self.lease.holder,
                "isHeld": self.lease.is_live,
            }
            more = {"renewedAt": self.lease.renewed_at, "shard": self.lease.shard, "shards": self.lease.shards or None}
            value["lease"] |= {name: each for name, each in more.items() if each is not None}
        return value

    def _lines(self) -> Iterator[Line]:
        if self.waits:
            yield Line("waits", self.waits)
        if self.status is not None:
            yield Line("status", f"written by {self.status.manager}, {wording.age(self.status.at_ns, self.at)}")
        for each in self.differs:
            yield Line("differs", each)
        if self.lease is not None:
            yield Line("lease", f"{self.lease_namespace}/{self.lease.name}{_shard(self.lease)}: {self._held()}")

    def _held(self) -> str:
        lease = self.lease
        if lease is None or not lease.holder:
            return "released, and held by nobody"
        renewed = "" if lease.renewed_at is None else f" {wording.age(lease.renewed_at, self.at)}"
        if lease.is_live:
            return f"held by {lease.holder}, renewed{renewed}"
        return f"held by nobody: {lease.holder} renewed it last{renewed}"


def _shard(lease: Holding) -> str:
    return "" if lease.shard is None else f" (shard {lease.shard} of {lease.shards})"
