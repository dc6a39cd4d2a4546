"""What controllers and node may rely on: the contract of `Registry`, row by row of its docstrings."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from patience import WITHIN_S
from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.registry import ObjectEvent, Registry
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import KINDS, obj
from podscaler.testing.registry import OpenRegistry, open_registry

GADGETS = "gadgets.example.com"
RUNNERS = "runners.example.com"


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[OpenRegistry]:
    """The API server's registry on a real file."""
    async with open_registry(tmp_path / "data", KINDS, VirtualClock()) as found:
        yield found


@pytest.fixture
def registry(opened: OpenRegistry) -> Registry:
    """What the contract is about; mypy checks that it has the protocol's shape."""
    return opened.registry


def owned(name: str, uid: str, *, controller: bool = True) -> dict[str, Any]:
    """A gadget that an object with this uid owns."""
    new = obj(name)
    reference = {"apiVersion": "v1", "kind": "Zone", "name": "o", "uid": uid, "controller": controller}
    new["metadata"]["ownerReferences"] = [reference]
    return new


async def refusal(waiting: Any) -> int:
    """The code of the StatusError that an operation ends in."""
    with pytest.raises(StatusError) as refused:
        await waiting
    return refused.value.code


async def take(changes: AsyncIterator[ObjectEvent], count: int) -> list[tuple[str, str]]:
    """Type and name of the next changes."""
    found = [await asyncio.wait_for(anext(changes), WITHIN_S) for _ in range(count)]
    return [(change.type, change.object["metadata"]["name"]) for change in found]


async def test_get_gives_the_object_or_404(registry: Registry) -> None:
    """get raises where find is None."""
    made = await registry.create(GADGETS, obj("a"))
    assert registry.get(GADGETS, "default", "a") == made == registry.find(GADGETS, "default", "a")
    assert registry.find(GADGETS, "default", "b") is None
    with pytest.raises(StatusError) as refused:
        registry.get(GADGETS, "default", "b")
    assert refused.value.code == 404


async def test_objects_are_the_callers_own(registry: Registry) -> None:
    """Changing what was given or got changes nothing stored."""
    given = obj("a", size=1)
    made = await registry.create(GADGETS, given)
    given["spec"]["size"] = made["spec"]["size"] = 2
    registry.get(GADGETS, "default", "a")["spec"]["size"] = 3
    registry.list(GADGETS)[0]["spec"]["size"] = 4
    assert registry.get(GADGETS, "default", "a")["spec"]["size"] == 1
    assert given["metadata"] == {"name": "a", "namespace": "default"}


async def test_create_defaults_and_validates(registry: Registry) -> None:
    """What a caller leaves out is defaulted; what is wrong is refused as over HTTP."""
    made = await registry.create(GADGETS, obj("a"))
    assert made["spec"] == {"colour": "grey"}
    assert await refusal(registry.create(GADGETS, obj("b", size=-1))) == 422
    assert await refusal(registry.create(GADGETS, obj("a"))) == 409


async def test_list_is_in_key_order_and_by_labels(registry: Registry) -> None:
    """All of the labels must be there; the namespace may be any."""
    await registry.create(GADGETS, obj("b", labels={"x": "1", "y": "2"}))
    await registry.create(GADGETS, obj("a", labels={"x": "1"}))
    found = [
        [each["metadata"]["name"] for each in registry.list(GADGETS, "default", labels=labels)]
        for labels in (None, {"x": "1"}, {"x": "1", "y": "2"}, {"x": "2"})
    ]
    assert found == [["a", "b"], ["a", "b"], ["b"], []]


async def test_owned_by_is_by_any_owner_reference(registry: Registry) -> None:
    """Dependents are found by uid, controller or not."""
    await registry.create(GADGETS, owned("a", "u1"))
    await registry.create(GADGETS, owned("b", "u1", controller=False))
    await registry.create(GADGETS, owned("c", "u2"))
    found = [[each["metadata"]["name"] for each in registry.owned_by(GADGETS, uid)] for uid in ("u1", "u2", "u3")]
    assert found == [["a", "b"], ["c"], []]


async def test_update_replaces_spec_and_refuses_stale_versions(registry: Registry) -> None:
    """The version in the object must be the stored one; without one the write is unconditional."""
    made = await registry.create(GADGETS, obj("a", size=1))
    made["spec"]["size"] = 2
    newer = await registry.update(GADGETS, made)
    assert await refusal(registry.update(GADGETS, made)) == 409
    del made["metadata"]["resourceVersion"]
    assert (await registry.update(GADGETS, made))["metadata"] == newer["metadata"]
    assert await refusal(registry.update(GADGETS, obj("b"))) == 404
    assert await refusal(registry.update(GADGETS, {**made, "spec": {"size": -1}})) == 422


async def test_status_is_apart_from_spec(registry: Registry) -> None:
    """subresource="status" replaces only the status, an update of the object everything else."""
    made = await registry.create(GADGETS, obj("a", size=1))
    made |= {"status": {"size": 1}, "spec": {"size": 9}}
    shown = await registry.update(GADGETS, made, subresource="status")
    assert (shown["spec"], shown["status"]) == ({"size": 1, "colour": "grey"}, {"size": 1})


async def test_mutate_never_conflicts(registry: Registry) -> None:
    """Concurrent read-change-writes all count."""
    await registry.create(GADGETS, obj("a", size=0))

    def grow(gadget: dict[str, Any]) -> None:
        gadget["spec"]["size"] += 1

    await asyncio.gather(*(registry.mutate(GADGETS, "default", "a", grow) for _ in range(50)))
    assert registry.get(GADGETS, "default", "a")["spec"]["size"] == 50
    assert await refusal(registry.mutate(GADGETS, "default", "b", grow)) == 404


async def test_mutate_passes_on_what_the_change_raises(registry: Registry) -> None:
    """A change may give up; nothing is stored then."""
    made = await registry.create(GADGETS, obj("a"))

    def give_up(gadget: dict[str, Any]) -> None:
        gadget["spec"]["size"] = 1
        raise LookupError("not this one")

    with pytest.raises(LookupError, match="not this one"):
        await registry.mutate(GADGETS, "default", "a", give_up)
    assert registry.get(GADGETS, "default", "a") == made


async def test_writes_that_change_nothing_keep_the_version(registry: Registry) -> None:
    """A no-op is no event and no new version."""
    made = await registry.create(GADGETS, obj("a"))
    assert await registry.mutate(GADGETS, "default", "a", lambda _gadget: None) == made
    assert await registry.update(GADGETS, made) == made


async def test_delete_obeys_grace_uid_and_finalizers(registry: Registry) -> None:
    """Graceful where the kind is, at once with 0; another uid is a 409; a finalizer keeps the object."""
    made = await registry.create(RUNNERS, obj("a", running=True))
    await registry.delete(RUNNERS, "default", "a")
    assert registry.get(RUNNERS, "default", "a")["metadata"]["deletionGracePeriodSeconds"] == 30
    assert await refusal(registry.delete(RUNNERS, "default", "a", uid="other")) == 409
    await registry.delete(RUNNERS, "default", "a", uid=made["metadata"]["uid"], grace_period_s=0)
    assert await refusal(registry.delete(RUNNERS, "default", "a")) == 404
    await registry.create(GADGETS, obj("b"))
    await registry.delete(GADGETS, "default", "b", propagation="Foreground")
    assert registry.get(GADGETS, "default", "b")["metadata"]["finalizers"] == ["foregroundDeletion"]
    await registry.mutate(GADGETS, "default", "b", lambda gadget: gadget["metadata"].pop("finalizers"))
    assert registry.find(GADGETS, "default", "b") is None


async def test_watch_begins_with_what_there_is(registry: Registry) -> None:
    """First an ADDED for each object, then every change of every namespace in order."""
    await registry.create("namespaces", obj("other", namespace=""))
    await registry.create(GADGETS, obj("a"))
    changes = registry.watch(GADGETS)
    assert await take(changes, 1) == [("ADDED", "a")]
    await registry.create(GADGETS, obj("b", namespace="other"))
    await registry.mutate(GADGETS, "default", "a", lambda gadget: gadget["spec"].update(size=1))
    await registry.delete(GADGETS, "default", "a")
    assert await take(changes, 3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_watch_counts_from_its_call(registry: Registry) -> None:
    """Without initial events, changes count from the call, not from the first read."""
    await registry.create(GADGETS, obj("a"))
    changes = registry.watch(GADGETS, initial=False)
    await registry.create(GADGETS, obj("b"))
    assert await take(changes, 1) == [("ADDED", "b")]


async def test_slow_watchers_are_told_to_begin_again(opened: OpenRegistry) -> None:
    """Who falls behind the kept history gets a 410, and a new watch begins with everything there is."""
    registry: Registry = opened.registry
    changes = registry.watch(GADGETS)
    await registry.create(GADGETS, obj("a"))
    await take(changes, 1)
    await registry.create(GADGETS, obj("b"))
    await opened.objects.compact()
    assert await refusal(anext(changes)) == 410
    assert await take(registry.watch(GADGETS), 2) == [("ADDED", "a"), ("ADDED", "b")]
