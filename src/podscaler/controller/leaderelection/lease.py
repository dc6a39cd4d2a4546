"""Defines the Lease (coordination.k8s.io/v1) as elections use it, and LeaseLock, which reads and writes one Lease.

An elector has a LeaseLock, which replaces a Lease only if it is unchanged since it was read: the whole object is
written back, so that fields and labels of others stay, and its resourceVersion makes one of two concurrent updates
fail. `lease_informer` watches all Leases of an election. A label names the election of a Lease, an annotation its
number of shards. A further field of records: in LeaderElectionRecord, `_Spec`, `Lease.record` and `spec_of`.

Source: client-go's leaselock (the meaning of fields).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podscaler.api.machinery.meta import ObjectMeta, Wire
from podscaler.base.errors import StatusError
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, is_not_found

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
        holder: the identity; empty if the lease was released.
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
    """The spec of a coordination.k8s.io/v1 Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Wire, frozen=True):
    """The fields of a Lease object that are read."""

    metadata: ObjectMeta
    spec: _Spec = _Spec()

    @property
    def record(self) -> LeaderElectionRecord:
        """The spec with absent fields as empty values."""
        spec = self.spec
        return LeaderElectionRecord(
            holder=spec.holder_identity or "",
            duration_s=spec.lease_duration_seconds or 0,
            acquired_at=spec.acquire_time,
            renewed_at=spec.renew_time,
            transitions=spec.lease_transitions or 0,
        )

    @property
    def shards(self) -> str:
        """The number of shards in the annotation, as text; empty without the annotation."""
        return (self.metadata.annotations or {}).get(SHARDS, "")


_LEASE = msgspec.json.Decoder(Lease)


def parse(lease_json: bytes | msgspec.Raw) -> Lease:
    """The Lease in JSON. Raises ValueError."""
    return _LEASE.decode(lease_json)


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
    """The path of the Leases of a namespace, or of the Lease of that name."""
    return urls.group_version(GROUP, "v1") + urls.path("namespaces", namespace, "leases", *name)


def delete_options_if_unchanged(meta: ObjectMeta) -> bytes:
    """DeleteOptions that delete a Lease only if it is unchanged."""
    preconditions = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    return msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions})


class LeaseLock:
    """Reads and writes one Lease; remembers the object as it was last read or written.

    Args:
        client: a client whose writes need no lease.
        namespace, name: identify the Lease.
        election: the value of the election label.
        shards: the value of the shards annotation.
    """

    def __init__(self, client: Client, *, namespace: str, name: str, election: str, shards: int) -> None:
        self._client = client
        self.namespace = namespace
        self.name = name
        self._labels = {ELECTION: election}
        self._annotations = {SHARDS: str(shards)}
        self._object: dict[str, Any] | None = None

    def __str__(self) -> str:
        """Namespace and name, for messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the Lease as it was last read or written; empty before that."""
        metadata: Mapping[str, Any] = (self._object or {}).get("metadata", {})
        return metadata

    async def get(self) -> LeaderElectionRecord | None:
        """Read the Lease; its record, None if there is no Lease. Raises StatusError."""
        try:
            body = await self._client.get(path(self.namespace, self.name), subject=self._subject)
        except StatusError as error:
            if is_not_found(error):
                self._object = None
                return None
            raise
        return self._remember(body)

    async def create(self, record: LeaderElectionRecord) -> None:
        """Create the Lease. Raises StatusError, also if it exists."""
        metadata = {"name": self.name, "namespace": self.namespace}
        body = msgspec.json.encode(self._make_object({"metadata": metadata}, record))
        self._remember(await self._client.post(path(self.namespace), body, subject=self._subject))

    async def update(self, record: LeaderElectionRecord) -> None:
        """Replace the record that was read last. Raises StatusError, also if the Lease has changed since."""
        if self._object is None:
            raise StatusError("lease not initialized, call get or create first", code=0)
        body = msgspec.json.encode(self._make_object(self._object, record))
        self._remember(await self._client.put(path(self.namespace, self.name), body, subject=self._subject))

    async def delete(self) -> None:
        """Delete the Lease if it is as it was last read or written. Raises StatusError."""
        body = delete_options_if_unchanged(msgspec.convert(self.metadata, ObjectMeta))
        await self._client.delete(path(self.namespace, self.name), subject=self._subject, body=body)

    @property
    def _subject(self) -> str:
        return f"{RESOURCE} {self.name}"

    def _make_object(self, lease_object: Mapping[str, Any], record: LeaderElectionRecord) -> dict[str, Any]:
        """The Lease object (JSON-ready) with the record as its spec; other fields, labels and annotations stay."""
        metadata = dict(lease_object["metadata"])
        metadata["labels"] = (metadata.get("labels") or {}) | self._labels
        metadata["annotations"] = (metadata.get("annotations") or {}) | self._annotations
        spec = (lease_object.get("spec") or {}) | spec_of(record)
        return {"kind": "Lease", "apiVersion": f"{GROUP}/v1", "metadata": metadata, "spec": spec}

    def _remember(self, body: bytes) -> LeaderElectionRecord:
        """Remember the Lease in the body of a response; returns its record. Raises StatusError for an invalid body."""
        try:
            self._object = msgspec.json.decode(body, type=dict[str, Any])
            return parse(body).record
        except ValueError as error:
            raise StatusError(f"the Lease {self} cannot be read: {error}", code=0) from error
