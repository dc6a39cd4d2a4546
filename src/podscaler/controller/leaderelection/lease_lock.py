"""The lock of one Lease: reads it, creates it, and replaces it only as it was read.

An elector has one. The whole object is written back, so that fields and labels of others stay; its resourceVersion
makes one of two concurrent updates fail.

Source: client-go's leaselock.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podscaler.api.machinery.meta import ObjectMeta
from podscaler.base.errors import StatusError
from podscaler.controller.leaderelection import lease
from podscaler.controller.leaderelection.lease import LeaderElectionRecord
from podscaler.kube.client.client import Client, is_not_found


class LeaseLock:
    """See the module.

    Args:
        client: not fenced.
        namespace: of the Lease.
        name: of the Lease.
        election: the value of its election label.
        shards: the value of its shards annotation.
    """

    def __init__(self, client: Client, *, namespace: str, name: str, election: str, shards: int) -> None:
        self._client = client
        self.namespace = namespace
        self.name = name
        self._labels = {lease.ELECTION: election}
        self._annotations = {lease.SHARDS: str(shards)}
        self._object: dict[str, Any] | None = None

    def __str__(self) -> str:
        """Namespace and name, for messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the Lease as it was last read or written; empty before that."""
        found: Mapping[str, Any] = (self._object or {}).get("metadata", {})
        return found

    async def get(self) -> LeaderElectionRecord | None:
        """The record of the Lease as it is now; None where there is no Lease. Raises StatusError."""
        try:
            body = await self._client.get(lease.path(self.namespace, self.name), subject=self._subject)
        except StatusError as error:
            if is_not_found(error):
                self._object = None
                return None
            raise
        return self._keep(body)

    async def create(self, record: LeaderElectionRecord) -> None:
        """Create the Lease. Raises StatusError, also where it exists."""
        metadata = {"name": self.name, "namespace": self.namespace}
        body = msgspec.json.encode(self._with({"metadata": metadata}, record))
        self._keep(await self._client.post(lease.path(self.namespace), body, subject=self._subject))

    async def update(self, record: LeaderElectionRecord) -> None:
        """Replace the record that was read last. Raises StatusError, also where the Lease has changed since."""
        if self._object is None:
            raise StatusError("lease not initialized, call get or create first", code=0)
        body = msgspec.json.encode(self._with(self._object, record))
        self._keep(await self._client.put(lease.path(self.namespace, self.name), body, subject=self._subject))

    async def delete(self) -> None:
        """Delete the Lease if it is as it was last read or written. Raises StatusError."""
        body = lease.only_if(msgspec.convert(self.metadata, ObjectMeta))
        await self._client.delete(lease.path(self.namespace, self.name), subject=self._subject, body=body)

    @property
    def _subject(self) -> str:
        return f"{lease.RESOURCE} {self.name}"

    def _with(self, known: Mapping[str, Any], record: LeaderElectionRecord) -> dict[str, Any]:
        metadata = dict(known["metadata"])
        metadata["labels"] = (metadata.get("labels") or {}) | self._labels
        metadata["annotations"] = (metadata.get("annotations") or {}) | self._annotations
        spec = (known.get("spec") or {}) | lease.spec_of(record)
        return {"kind": "Lease", "apiVersion": f"{lease.GROUP}/v1", "metadata": metadata, "spec": spec}

    def _keep(self, body: bytes) -> LeaderElectionRecord:
        try:
            self._object = msgspec.json.decode(body, type=dict[str, Any])
            return lease.read(body).record
        except ValueError as error:
            raise StatusError(f"the Lease {self} cannot be read: {error}", code=0) from error
