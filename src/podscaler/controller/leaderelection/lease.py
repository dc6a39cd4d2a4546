"""A Lease (coordination.k8s.io/v1) as elections use it.

`lease_lock` reads and writes one, `lease_informer` follows all of an election. Labels tell which Leases belong to an
election, an annotation for how many shards it is.

Source: client-go's leaselock (which fields mean what).
"""

from typing import Any

import msgspec

from podscaler.api.machinery.meta import ObjectMeta, Wire
from podscaler.kube.client import urls

GROUP = "coordination.k8s.io"
RESOURCE = f"leases.{GROUP}"
NAME = "podscaler-controller"
"""Of the Lease of a lone leader, and of the election, unless flags say otherwise."""
NAMESPACE = "kube-system"
"""Of the Leases, unless flags say otherwise."""
ELECTION = "podscaler.dev/election"
"""The label: the name of the election."""
SHARDS = "podscaler.dev/shards"
"""The annotation: into how many shards autoscalers are split; 0: not at all."""


class LeaderElectionRecord(msgspec.Struct, frozen=True):
    """Who holds a lease, and since when; equal records mean that nothing was renewed.

    Attributes:
        holder: the identity; empty: nobody, the last one has released it.
        duration_s: how long others wait after they saw the record change.
        acquired_at, renewed_at: by the holder's wall clock, as texts; nobody computes with them.
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
    """What is read of a Lease."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()

    @property
    def record(self) -> LeaderElectionRecord:
        """What it says."""
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
        """For how many shards the election is that it belongs to, as a text."""
        return (self.metadata.annotations or {}).get(SHARDS, "")


_LEASE = msgspec.json.Decoder(Lease)


def read(raw: bytes | msgspec.Raw) -> Lease:
    """The Lease in JSON. Raises ValueError."""
    return _LEASE.decode(raw)


def spec_of(record: LeaderElectionRecord) -> dict[str, Any]:
    """The fields of a record, JSON-ready; nobody is an empty holder, as client-go writes it."""
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_s,
        "acquireTime": record.acquired_at,
        "renewTime": record.renewed_at,
        "leaseTransitions": record.transitions,
    }


def shard_name(election: str, shard: int) -> str:
    """Of the Lease of a shard."""
    return f"{election}-shard-{shard}"


def path(namespace: str, *name: str) -> str:
    """Of the Leases of a namespace, or of one."""
    return urls.group_version(GROUP, "v1") + urls.path("namespaces", namespace, "leases", *name)


def only_if(meta: ObjectMeta) -> bytes:
    """The options of a DELETE that removes a Lease only as it was seen."""
    preconditions = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions})
