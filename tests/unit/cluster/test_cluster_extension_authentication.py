"""The ConfigMap that says to other API servers whom to believe."""

from pathlib import Path

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.aggregator.extension_authentication import NAME, ExtensionAuthentication
from podscaler.controlplane.registry.registry import ObjectEvent, Registry
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

STORED = [resource for resource in catalog.RESOURCES if resource.stored]
DATA = {
    "client-ca-file": "CLIENTS",
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-client-ca-file": "FRONT",
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-username-headers": '["X-Remote-User"]',
}


def teller(registry: Registry) -> ExtensionAuthentication:
    """The controller."""
    return ExtensionAuthentication(registry, client_authority="CLIENTS", front_authority="FRONT")


async def test_it_is_made_and_mended(tmp_path: Path) -> None:
    """What belongs to it is there, whatever others do to it; what they add stays."""
    async with open_registry(tmp_path / "data", STORED, VirtualClock()) as opened:
        registry = opened.registry
        await registry.create("namespaces", {"metadata": {"name": "kube-system"}})
        told = teller(registry)
        assert list(told.prime()) == [NAME]
        await told.sync(NAME)
        made = registry.get("configmaps", "kube-system", NAME)
        assert made["data"] == DATA
        await registry.update("configmaps", {**made, "data": {"own": "1", "client-ca-file": "OTHERS"}})
        await told.sync(NAME)
        assert registry.get("configmaps", "kube-system", NAME)["data"] == {"own": "1", **DATA}


@pytest.mark.parametrize(
    ("namespace", "name", "keys"),
    [("kube-system", NAME, [NAME]), ("default", NAME, []), ("kube-system", "other", [])],
    ids=["the ConfigMap", "in another namespace", "another one"],
)
async def test_what_it_looks_at(tmp_path: Path, namespace: str, name: str, keys: list[str]) -> None:
    """No other ConfigMap."""
    async with open_registry(tmp_path / "data", STORED, VirtualClock()) as opened:
        watched = teller(opened.registry).watches()[0]
        assert (
            list(watched.get_keys(ObjectEvent("MODIFIED", {"metadata": {"namespace": namespace, "name": name}})))
            == keys
        )
