"""Network namespaces of pods, without the kernel's."""

import os
from collections.abc import Iterable

import pytest

from podscaler.controlplane.network import pod_networks
from podscaler.controlplane.network.addresses import AddressBlock
from podscaler.controlplane.network.pod_networks import PodNetworkError, PodNetworks


async def test_a_namespace_that_was_made_half_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interface and the route are removed; the next attempt does not take it for complete."""
    batches: list[list[str]] = []
    failures = ["ip: Error: Device for nexthop is not up."]

    def run(commands: Iterable[str]) -> None:
        batch = list(commands)
        batches.append(batch)
        if failures and " master " in batch[0]:
            raise PodNetworkError(failures.pop())

    monkeypatch.setattr(pod_networks, "_run_ip", run)
    monkeypatch.setattr(pod_networks, "_run_in_own_thread", lambda _make: os.open(os.devnull, os.O_RDONLY))
    monkeypatch.setattr(pod_networks, "_await_forwarding", lambda _interface: None)
    networks = PodNetworks(AddressBlock(7))
    with pytest.raises(PodNetworkError, match="Device for nexthop is not up"):
        await networks.ensure("127.7.1.1")
    assert networks.namespace_path("127.7.1.1") == ""
    assert [command.split()[:2] for command in batches[-1]] == [["link", "delete"], ["route", "delete"]]
    await networks.ensure("127.7.1.1")
    assert networks.namespace_path("127.7.1.1") != ""
    await networks.discard("127.7.1.1")
