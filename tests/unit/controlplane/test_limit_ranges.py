"""New pods and the LimitRanges of their namespace."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.base.errors import StatusError
from podscaler.controlplane.admission import limit_ranges
from podscaler.controlplane.registry.objects import Objects
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

Object = dict[str, Any]


@pytest.fixture
async def objects(tmp_path: Path) -> AsyncIterator[Objects]:
    """A namespace `limited` whose containers get 100m of cpu and may have 1Gi of memory, and one without limits."""
    async with open_registry(tmp_path, catalog.RESOURCES, VirtualClock()) as opened:
        limit_ranges.register(opened.objects)
        await opened.objects.create("namespaces", {"metadata": {"name": "limited"}})
        item = {"type": "Container", "defaultRequest": {"cpu": "100m"}, "max": {"memory": "1Gi"}}
        metadata = {"name": "limits", "namespace": "limited"}
        await opened.objects.create("limitranges", {"metadata": metadata, "spec": {"limits": [item]}})
        yield opened.objects


def _pod(namespace: str, **limits: str) -> Object:
    container = {"name": "a", "image": "a", "resources": {"limits": limits, "requests": dict(limits)}}
    made = {"metadata": {"name": "p", "namespace": namespace}, "spec": {"containers": [container]}}
    catalog.get("pods").versions[0].default(made)
    return made


async def test_pods_get_requests(objects: Objects) -> None:
    """What the range gives is stored, and counts for the class of service; elsewhere nothing is given."""
    limited = (await objects.create("pods", _pod("limited", memory="1Gi"))).decode()
    other = (await objects.create("pods", _pod("default", memory="4Gi"))).decode()
    requests = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in (limited, other)]
    assert requests == [{"memory": "1Gi", "cpu": "100m"}, {"memory": "4Gi"}]
    assert limited["status"]["qosClass"] == "Burstable"


async def test_pods_keep_to_limits(objects: Objects) -> None:
    """A pod beyond a range is forbidden, with the reason."""
    with pytest.raises(StatusError) as refused:
        await objects.create("pods", _pod("limited", memory="2Gi"))
    text = 'pods "p" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi'
    assert (refused.value.code, refused.value.message) == (403, text)


async def test_limits_are_for_new_pods(objects: Objects) -> None:
    """A pod that is there already stays, whatever the ranges say now."""
    await objects.create("pods", _pod("default", memory="4Gi"))
    item = {"type": "Container", "max": {"memory": "1Gi"}}
    metadata = {"name": "late", "namespace": "default"}
    await objects.create("limitranges", {"metadata": metadata, "spec": {"limits": [item]}})

    def label(pod: Object) -> Object:
        pod["metadata"]["labels"] = {"a": "b"}
        return pod

    changed = await objects.update("pods", "default", "p", label)
    assert changed.decode()["metadata"]["labels"] == {"a": "b"}


def _claim(name: str, size: str) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    made = {"metadata": {"name": name, "namespace": "limited"}, "spec": spec}
    catalog.get("persistentvolumeclaims").versions[0].default(made)
    return made


async def test_claims_keep_to_limits(objects: Objects) -> None:
    """A claim that requests more storage than a range allows is forbidden, also by an update of an earlier one."""
    await objects.create("persistentvolumeclaims", _claim("early", "2Gi"))
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}
    await objects.create("limitranges", {"metadata": {"name": "c", "namespace": "limited"}, "spec": {"limits": [item]}})
    text = "is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    with pytest.raises(StatusError, match=text):
        await objects.create("persistentvolumeclaims", _claim("large", "2Gi"))
    with pytest.raises(StatusError, match=text):
        await objects.update("persistentvolumeclaims", "limited", "early", lambda claim: claim)
    await objects.create("persistentvolumeclaims", _claim("small", "1Gi"))
