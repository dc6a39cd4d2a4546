"""Managers of fields as the store keeps them: creates, updates, subresources, Scales, controllers, edited entries."""

from typing import Any

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.storage.options import Author, UpdateOptions
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import obj

Object = dict[str, Any]

GADGETS = "gadgets.example.com"
VERSION = "example.com/v1"
ME = UpdateOptions(author=Author("me"))
STATUS = UpdateOptions("status", author=Author("me"))


def summary(found: Object) -> dict[str, Object]:
    """What each manager owns."""
    entries = found["metadata"].get("managedFields", [])
    return {
        " ".join((entry["manager"], entry["operation"], entry.get("subresource", ""))).strip(): entry["fieldsV1"]
        for entry in entries
    }


async def made(objects: Objects) -> Object:
    """A gadget of somebody's."""
    return (await objects.create(GADGETS, obj("a", size=1, colour="red"), author=Author("maker"))).decode()


async def test_who_creates_owns(objects: Objects) -> None:
    """All that was sent, not what is the server's."""
    assert summary(await made(objects)) == {"maker Update": {"f:spec": {".": {}, "f:colour": {}, "f:size": {}}}}


async def test_who_changes_takes(objects: Objects) -> None:
    """A changed field has a new owner, a removed one none."""
    await made(objects)
    new = obj("a", size=2)
    entry = await objects.update(GADGETS, "default", "a", lambda _old: new, options=ME)
    assert summary(entry.decode()) == {"maker Update": {"f:spec": {}}, "me Update": {"f:spec": {"f:size": {}}}}


async def test_no_change_keeps_entries(objects: Objects, clock: VirtualClock) -> None:
    """An update that changes nothing is none, also a minute later and by somebody else."""
    before = await made(objects)
    await clock.advance(60)
    entry = await objects.update(GADGETS, "default", "a", lambda old: old, options=ME)
    assert entry.decode() == before


async def test_status_has_entries_of_its_own(objects: Objects) -> None:
    """What is written through a subresource is noted with it."""
    await made(objects)
    entry = await objects.update(GADGETS, "default", "a", lambda old: {**old, "status": {"size": 1}}, options=STATUS)
    assert summary(entry.decode())["me Update status"] == {"f:status": {".": {}, "f:size": {}}}


async def test_scales_own_replicas(objects: Objects) -> None:
    """Who scales owns the replicas; here they stand at spec.replicas, which gadgets do not have."""
    await objects.create(GADGETS, obj("a", replicas=1, size=1), author=Author("maker"))
    wanted = {"spec": {"replicas": 3}, "metadata": {}}
    await objects.update_scale(GADGETS, "default", "a", lambda _scale: wanted, options=ME)
    found = objects.get(GADGETS, "default", "a").decode()
    assert summary(found)["me Update scale"] == {"f:spec": {"f:replicas": {}}}


async def test_scales_of_others_are_refused(objects: Objects) -> None:
    """A Scale that names another object's uid is a conflict."""
    await made(objects)
    wanted = {"spec": {"replicas": 3}, "metadata": {"uid": "x"}}
    with pytest.raises(StatusError, match=r"^Operation cannot be fulfilled on gadgets/scale\.example\.com \"a\": "):
        await objects.update_scale(GADGETS, "default", "a", lambda _scale: wanted, options=ME)


async def test_controllers_have_names(registry: Registry) -> None:
    """What runs in the same process writes under its own name."""
    await registry.create(GADGETS, obj("a", size=1))
    changed = await registry.acting_as("kubelet").mutate(
        GADGETS, "default", "a", lambda gadget: gadget["spec"].update(size=2)
    )
    assert set(summary(changed)) == {"kube-controller-manager Update", "kubelet Update"}


def entry_of(manager: str, **more: Any) -> Object:
    """An entry as a client writes it."""
    fields = {"f:spec": {"f:size": {}}}
    entry = {"manager": manager, "operation": "Update", "apiVersion": VERSION, "fieldsType": "FieldsV1"}
    return {**entry, "fieldsV1": fields, **more}


@pytest.mark.parametrize(
    ("sent", "managers"),
    [
        pytest.param([], set(), id="an empty list forgets"),
        pytest.param([{}], set(), id="an empty entry forgets"),
        pytest.param([entry_of("x")], {"x Update"}, id="others replace"),
        pytest.param([entry_of("x", operation="?")], {"maker Update"}, id="nonsense is passed over"),
        pytest.param([entry_of("x"), entry_of("y", apiVersion="v9")], {"x Update"}, id="unknown versions go"),
    ],
)
async def test_clients_edit_entries(objects: Objects, sent: list[Object], managers: set[str]) -> None:
    """Entries that come with an update are taken as far as they can be understood."""
    await made(objects)

    def change(old: Object) -> Object:
        old["metadata"]["managedFields"] = sent
        return old

    entry = await objects.update(GADGETS, "default", "a", change, options=ME)
    assert set(summary(entry.decode())) == managers


async def test_names_in_entries_are_checked(objects: Objects) -> None:
    """A manager must be called as managers may be."""
    await made(objects)

    def change(old: Object) -> Object:
        old["metadata"]["managedFields"] = [entry_of("a\x01b", subresource="s" * 257)]
        return old

    with pytest.raises(StatusError) as caught:
        await objects.update(GADGETS, "default", "a", change, options=ME)
    fields = [cause.field for cause in caught.value.causes]
    assert fields == ["metadata.managedFields[0].manager", "metadata.managedFields[0].subresource"]


async def test_forgotten_objects_are_not_tracked(objects: Objects) -> None:
    """Without entries an object gets none by updates."""
    await made(objects)

    def forget(old: Object) -> Object:
        old["metadata"]["managedFields"] = []
        return old

    await objects.update(GADGETS, "default", "a", forget, options=ME)
    entry = await objects.update(GADGETS, "default", "a", lambda _old: obj("a", size=5), options=ME)
    assert summary(entry.decode()) == {}
