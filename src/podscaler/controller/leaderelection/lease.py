"""The Lease (coordination.k8s.io/v1) as elections use it.

`lease_lock` reads and writes one, `lease_informer` watches all of an election. A label names the election of a Lease,
an annotation its number of shards.

Source: client-go's leaselock (the meaning of fields).
"""

from typing import Any

import msgspec

from podscaler.api.machinery.meta import ObjectMeta, Wire
from podscaler.kube.client import urls

GROUP = "coordination.k8s.io"
RESOURCE = f"leases.{GROUP}"
NAME = "podscaler-controller"
"""The default name of the Lease of a single leader, and of the election."""
NAMESPACE = "kube-system"
"""The default namespace of the Leases."""
ELECTION = "podscaler.dev/election"
"""The label with the name of the election."""
SHARDS = "podscaler.dev/shards"
"""The annotation with the number of shards; 0: a single leader."""


class LeaderElectionRecord(msgspec.Struct, frozen=True):
    """The holder of a lease, and since when; equal records mean that nothing was renewed.

    Attributes:
        holder: the identity; empty: the lease was released.
        duration_s: how long others wait after they saw the record change.
        acquired_at, renewed_at: RFC 3339, by the holder's wall clock; elections do not compute with them.
        transitions: how often the holder changed.
    """

    holder: str = ""
    duration_s: int = 0
    acquired_at: str | None = None
    renewed_at: str | None = None
    transitions: int = 0


class _Spec(Wire, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Wire, frozen=True):
    """The fields of a Lease that are read."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()

    @property
    def record(self) -> LeaderElectionRecord:
        """The spec."""
        spec = self.spec
        return LeaderElectionRecord(
            spec.holder_identity or "",
            spec.lease_duration_seconds or 0,
            spec.acquire_time,
            spec.renew_time,
            spec.lease_transitions or 0,
        )

    @property
    def shards(self) -> str:
        """The number of shards of its election, as text; empty where it has none."""
        return (self.metadata.annotations or {}).get(SHARDS, "")


_LEASE = msgspec.json.Decoder(Lease)


def read(raw: bytes | msgspec.Raw) -> Lease:
    """The Lease in JSON. Raises ValueError."""
    return _LEASE.decode(raw)


def spec_of(record: LeaderElectionRecord) -> dict[str, Any]:
    """The spec of a record, JSON-ready; a released lease has an empty holder, as client-go writes it."""
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_s,
        "acquireTime": record.acquired_at,
        "renewTime": record.renewed_at,
        "leaseTransitions": record.transitions,
    }


def shard_name(election: str, shard: int) -> str:
    """The name of the Lease of a shard."""
    return f"{election}-shard-{shard}"


def path(namespace: str, *name: str) -> str:
    """The path of the Leases of a namespace, or of one."""
    return urls.group_version(GROUP, "v1") + urls.path("namespaces", namespace, "leases", *name)


def only_if(meta: ObjectMeta) -> bytes:
    """DeleteOptions that delete a Lease only if it is unchanged."""
    preconditions = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions})
