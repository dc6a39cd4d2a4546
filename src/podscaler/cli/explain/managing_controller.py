"""Describes the controller that manages an autoscaler, as a cluster shows it: who wrote its status, who holds its
Lease.

`podscaler.cli.explain.explain_cluster` makes a ManagingController; `podscaler.cli.explain.explain` and
`podscaler.cli.diagnosis.examination` print its section "Looked after". Both facts are printed without a conclusion:
controllers other than podscaler, and podscaler without leader election, hold no such Lease, and a Lease does not name
the kinds of autoscalers that its holder manages. A further fact is an attribute, a line in `_lines` and a field in
`data`.
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
class ManagingController:
    """What is known about the controller that manages one autoscaler; None for what is not known.

    Attributes:
        observed_at_ns: when the cluster was read, since the epoch.
        waiting_reason: why the controller does nothing about a PodAutoscaler yet; empty if it syncs it.
        status_write: the last write of the autoscaler's status.
        lease: the Lease of the autoscaler's shard; without shards, the Lease of the leader.
        lease_namespace: the Lease's namespace.
        differences: those between the latest status and this explanation's computation, a phrase each.
    """

    observed_at_ns: int
    waiting_reason: str = ""
    status_write: StatusWrite | None = None
    lease: Holding | None = None
    lease_namespace: str = ""
    differences: tuple[str, ...] = ()

    @property
    def section(self) -> Section | None:
        """The section of the text output; None if nothing is known."""
        lines = tuple(self._lines())
        return Section(TITLE, lines) if lines else None

    @property
    def data(self) -> dict[str, Any]:
        """The known attributes for JSON; instants in nanoseconds since the epoch."""
        fields: dict[str, Any] = {"waits": self.waiting_reason} if self.waiting_reason else {}
        if self.differences:
            fields["differs"] = list(self.differences)
        if self.status_write is not None:
            fields["status"] = {"manager": self.status_write.manager, "at": self.status_write.at_ns}
        if self.lease is not None:
            fields["lease"] = {
                "namespace": self.lease_namespace,
                "name": self.lease.name,
                "holder": self.lease.holder,
                "isHeld": self.lease.is_live,
            }
            optional = {
                "renewedAt": self.lease.renewed_at,
                "shard": self.lease.shard,
                "shards": self.lease.shards or None,
            }
            fields["lease"] |= {name: fact for name, fact in optional.items() if fact is not None}
        return fields

    def _lines(self) -> Iterator[Line]:
        """The lines of the section: why it waits, who writes the status, what differs, who holds the lease."""
        if self.waiting_reason:
            yield Line("waits", self.waiting_reason)
        if self.status_write is not None:
            age_text = wording.age(self.status_write.at_ns, self.observed_at_ns)
            yield Line("status", f"written by {self.status_write.manager}, {age_text}")
        for difference in self.differences:
            yield Line("differs", difference)
        if self.lease is not None:
            text = f"{self.lease_namespace}/{self.lease.name}{_shard_text(self.lease)}: {self._holder_text()}"
            yield Line("lease", text)

    def _holder_text(self) -> str:
        """By whom the lease is held."""
        lease = self.lease
        if lease is None or not lease.holder:
            return "released, and held by nobody"
        renewed = "" if lease.renewed_at is None else f" {wording.age(lease.renewed_at, self.observed_at_ns)}"
        if lease.is_live:
            return f"held by {lease.holder}, renewed{renewed}"
        return f"held by nobody: {lease.holder} renewed it last{renewed}"


def _shard_text(lease: Holding) -> str:
    """` (shard 1 of 4)`; empty without shards."""
    return "" if lease.shard is None else f" (shard {lease.shard} of {lease.shards})"
