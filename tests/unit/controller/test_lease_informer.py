"""The observed Leases of an election."""

import random
from typing import Any

import msgspec

from podscaler.controller.leaderelection import lease
from podscaler.controller.leaderelection.lease_informer import LeaseInformer
from podscaler.kube.client.client import Client
from podscaler.testing import VirtualClock
from podscaler.testing.transport import ScriptedTransport


def read_lease(version: int, holder: str) -> lease.Lease:
    """A Lease with a resource version and a holder."""
    data: dict[str, Any] = {
        "metadata": {"name": "shard-0", "namespace": "default", "resourceVersion": str(version)},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15},
    }
    return lease.parse(msgspec.Raw(msgspec.json.encode(data)))


async def test_an_event_of_a_late_watch_does_not_replace_a_newer_lease() -> None:
    """A holder that `refresh` has read stays, with the age of its record."""
    clock = VirtualClock()
    leases = LeaseInformer(
        Client(ScriptedTransport(), clock), namespace="default", election="e", clock=clock, rng=random.Random(1)
    )
    leases.added(read_lease(8, "a"))
    await clock.advance(1)
    leases.updated(read_lease(8, "a"), read_lease(10, "b"))
    await clock.advance(1)
    leases.updated(read_lease(8, "a"), read_lease(9, "a"))
    observed = leases.find("shard-0")
    assert observed is not None
    assert (observed.lease.record.holder, clock.monotonic_s() - observed.first_observed_s) == ("b", 1.0)
