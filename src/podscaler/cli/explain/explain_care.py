"""The controller that manages an autoscaler, as a cluster shows it: the writer of its status, the holder of its Lease.

`podscaler.cli.explain.explain_cluster` makes it, `podscaler.cli.explain.explain` prints it. Other controllers, and ours
without leader election, have no Lease of ours, and a Lease does not name the kinds of autoscalers that its holder
manages; so both facts are printed without a conclusion.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podscaler.controller.informers.other_controllers import StatusWrite
from podscaler.controller.leaderelection.observed_holder import Holding
from podscaler.explain import wording
from podscaler.explain.explanation_parts import Line, Section

TITLE = "Looked after"


@dataclass(frozen=True, slots=True)
class Care:
    """What a cluster shows about the controller that manages one autoscaler; None for what is not known.

    Attributes:
        at: the instant of the observation.
        waits: why the controller does nothing about a PodAutoscaler yet; empty where it works on it.
        status: the last write of its status.
        lease: that of its shard, or of the lone leader.
        lease_namespace: its namespace.
        differs: differences between the latest status and this computation, a phrase each.
    """

    at: int
    waits: str = ""
    status: StatusWrite | None = None
    lease: Holding | None = None
    lease_namespace: str = ""
    differs: tuple[str, ...] = ()

    @property
    def section(self) -> Section | None:
        """The section of the text output; None where nothing is known."""
        lines = tuple(self._lines())
        return Section(TITLE, lines) if lines else None

    @property
    def data(self) -> dict[str, Any]:
        """The known attributes for JSON; instants in nanoseconds since the epoch."""
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
