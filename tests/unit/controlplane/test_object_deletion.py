"""Deletes: grace periods, finalizers, policies, preconditions, collections."""

from typing import Any

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.object_writer import Deleted
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.entries import Entry
from podscaler.controlplane.storage.options import DeleteOptions, ListOptions, Preconditions, UpdateOptions
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import obj

GADGETS = "gadgets.example.com"
RUNNERS = "runners.example.com"
NOW = "2026-01-01T00:00:00Z"


def marks(entry: Entry) -> dict[str, Any]:
    """What a delete sets in metadata."""
    names = ("generation", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers")
    metadata = entry.decode()["metadata"]
    return {name: metadata[name] for name in names if name in metadata}


async def held(objects: Objects, *finalizers: str) -> Entry:
    """A gadget with finalizers."""
    new = obj("a")
    new["metadata"]["finalizers"] = list(finalizers)
    return await objects.create(GADGETS, new)


async def release(objects: Objects, resource: str = GADGETS) -> Entry:
    """Take all finalizers off."""

    def change(old: dict[str, Any]) -> dict[str, Any]:
        old["metadata"].pop("finalizers", None)
        return old

    return await objects.update(resource, "default", "a", change)


async def delete(objects: Objects, resource: str = GADGETS, **options: Any) -> Deleted:
    """Delete the object `a`."""
    return await objects.delete(resource, "default", "a", options=DeleteOptions(**options))


async def test_without_anything_that_holds_it_an_object_goes(objects: Objects) -> None:
    """A delete removes; the answer is the last version, unmarked, as of its end."""
    made = await objects.create(GADGETS, obj("a"))
    done = await delete(objects)
    assert (done.gone, done.entry.revision, objects.revision) == (True, made.revision + 1, made.revision + 1)
    assert done.entry.body == made.body.replace(f'"{made.revision}"'.encode(), f'"{done.entry.revision}"'.encode())
    assert objects.find(GADGETS, "default", "a") is None


async def test_finalizers_keep_a_marked_object(objects: Objects) -> None:
    """The object stays, marked and with a raised generation, until the last finalizer is off."""
    await held(objects, "example.com/x")
    deleted = await delete(objects)
    assert not deleted.gone
    assert marks(deleted.entry) == {
        "generation": 2,
        "deletionTimestamp": NOW,
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["example.com/x"],
    }
    last = await release(objects)
    assert (last.revision, "finalizers" in marks(last)) == (deleted.entry.revision, False)
    assert objects.find(GADGETS, "default", "a") is None


async def test_second_delete_of_a_marked_object_changes_nothing(objects: Objects, clock: VirtualClock) -> None:
    """Deleting again keeps time and resourceVersion."""
    await held(objects, "example.com/x")
    first = await delete(objects)
    await clock.advance(60)
    assert await delete(objects) == first


async def test_marks_cannot_be_taken_back(objects: Objects) -> None:
    """An update neither undoes a deletion nor adds a finalizer to what is being deleted."""
    await held(objects, "example.com/x")
    marked = (await delete(objects)).entry

    def revive(old: dict[str, Any]) -> dict[str, Any]:
        metadata = {"name": "a", "finalizers": ["example.com/x"]}
        return {**old, "metadata": metadata}

    def hold_on(old: dict[str, Any]) -> dict[str, Any]:
        old["metadata"]["finalizers"].append("example.com/y")
        return old

    assert await objects.update(GADGETS, "default", "a", revive) is marked
    with pytest.raises(StatusError, match="no new finalizers can be added if the object is being deleted"):
        await objects.update(GADGETS, "default", "a", hold_on)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"propagation": "Background"}, None, id="background goes at once"),
        pytest.param({"propagation": "Foreground"}, ["foregroundDeletion"], id="foreground"),
        pytest.param({"propagation": "Orphan"}, ["orphan"], id="orphan"),
        pytest.param({"orphan_dependents": True}, ["orphan"], id="orphan as old clients say it"),
        pytest.param({"orphan_dependents": False}, None, id="not orphan as old clients say it"),
    ],
)
async def test_policies_are_finalizers(objects: Objects, options: dict[str, Any], expected: list[str] | None) -> None:
    """The policy is left to the garbage collector, as a finalizer of its own."""
    await objects.create(GADGETS, obj("a"))
    deleted = await delete(objects, **options)
    assert (deleted.gone, marks(deleted.entry).get("finalizers")) == (expected is None, expected)


async def test_later_policy_replaces_the_earlier(objects: Objects) -> None:
    """Foreground after orphan, and background after both: the last word counts; none leaves it as it is."""
    await objects.create(GADGETS, obj("a"))
    await delete(objects, propagation="Orphan")
    kept = await delete(objects)
    changed = await delete(objects, propagation="Foreground")
    assert [marks(each.entry)["finalizers"] for each in (kept, changed)] == [["orphan"], ["foregroundDeletion"]]
    assert (await delete(objects, propagation="Background")).gone


async def test_kinds_may_orphan_by_default(objects: Objects) -> None:
    """A kind whose dependents outlive it gets the finalizer unless the client says otherwise."""
    await objects.create("zones", obj("a", namespace=""))
    deleted = await objects.delete("zones", "", "a")
    assert marks(deleted.entry)["finalizers"] == ["orphan"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            {"propagation": "Bogus"},
            'propagationPolicy: Unsupported value: "Bogus": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
            id="unknown",
        ),
        pytest.param(
            {"propagation": "Orphan", "orphan_dependents": True},
            'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
            id="two at once",
        ),
    ],
)
async def test_policies_that_are_none(objects: Objects, options: dict[str, Any], message: str) -> None:
    """A wrong policy is a 422 and deletes nothing."""
    await objects.create(GADGETS, obj("a"))
    with pytest.raises(StatusError) as refused:
        await delete(objects, **options)
    assert (refused.value.code, refused.value.message) == (422, f'DeleteOptions.meta.k8s.io "" is invalid: {message}')
    assert objects.find(GADGETS, "default", "a") is not None


async def test_preconditions_name_what_differs(objects: Objects) -> None:
    """A delete of another uid or version is a 409 that names the kind."""
    made = await objects.create(GADGETS, obj("a"))
    wrong = {
        Preconditions(
            uid="other"
        ): f"the UID in the precondition (other) does not match the UID in record ({made.uid}). "
        "The object might have been deleted and then recreated",
        Preconditions(resource_version="1"): "the ResourceVersion in the precondition (1) does not match the "
        f"ResourceVersion in record ({made.revision}). The object might have been modified",
    }
    for preconditions, why in wrong.items():
        with pytest.raises(StatusError) as refused:
            await delete(objects, preconditions=preconditions)
        expected = f'Operation cannot be fulfilled on Gadget.example.com "a": {why}'
        assert (refused.value.code, refused.value.message, refused.value.details["kind"]) == (409, expected, "Gadget")
    right = Preconditions(uid=made.uid, resource_version=str(made.revision))
    assert (await delete(objects, preconditions=right)).gone


@pytest.mark.parametrize(
    ("spec", "grace_period_s", "expected"),
    [
        pytest.param({"running": True}, None, ("2026-01-01T00:00:30Z", 30), id="the kind's own period"),
        pytest.param({"running": True}, 5, ("2026-01-01T00:00:05Z", 5), id="the client's period"),
        pytest.param({"running": True, "graceSeconds": 0}, 60, ("2026-01-01T00:01:00Z", 60), id="more than its own"),
        pytest.param({"running": True}, -7, ("2026-01-01T00:00:01Z", 1), id="a negative one is a second"),
        pytest.param({"running": True}, 2**49, ("1779-05-24T00:10:43Z", 2**49), id="one beyond all time wraps"),
    ],
)
async def test_graceful_kinds_are_marked(
    objects: Objects, spec: dict[str, Any], grace_period_s: int | None, expected: tuple[str, int]
) -> None:
    """An object that needs time to stop gets a deadline and stays."""
    await objects.create(RUNNERS, obj("a", **spec))
    deleted = await delete(objects, RUNNERS, grace_period_s=grace_period_s)
    assert not deleted.gone
    assert marks(deleted.entry) == {
        "generation": 2,
        "deletionTimestamp": expected[0],
        "deletionGracePeriodSeconds": expected[1],
    }


@pytest.mark.parametrize(
    ("spec", "grace_period_s"),
    [
        pytest.param({}, None, id="not running"),
        pytest.param({}, 60, id="not running, whatever the client says"),
        pytest.param({"running": True}, 0, id="forced"),
    ],
)
async def test_graceful_kinds_that_go_at_once(
    objects: Objects, spec: dict[str, Any], grace_period_s: int | None
) -> None:
    """Without a period left the object is marked, told, and removed in one write."""
    await objects.create(RUNNERS, obj("a", **spec))
    watch = objects.watch(RUNNERS, options=ListOptions(resource_version=str(objects.revision)))
    deleted = await delete(objects, RUNNERS, grace_period_s=grace_period_s)
    batch = await watch.batch()
    assert (deleted.gone, marks(deleted.entry)) == (
        True,
        {"generation": 2, "deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0},
    )
    assert [(event.type, event.entry.revision) for event in batch.events] == [("MODIFIED", 4), ("DELETED", 5)]


async def test_deadline_can_only_come_nearer(objects: Objects, clock: VirtualClock) -> None:
    """A later delete shortens the period, counted from the first delete; a longer one, or none, changes nothing."""
    await objects.create(RUNNERS, obj("a", running=True))
    first = await delete(objects, RUNNERS)
    await clock.advance(3)
    assert await delete(objects, RUNNERS, grace_period_s=60) == first
    assert await delete(objects, RUNNERS) == first
    shorter = await delete(objects, RUNNERS, grace_period_s=10)
    assert marks(shorter.entry) == {
        "generation": 2,
        "deletionTimestamp": "2026-01-01T00:00:10Z",
        "deletionGracePeriodSeconds": 10,
    }
    assert (await delete(objects, RUNNERS, grace_period_s=0)).gone


async def test_finalizers_hold_graceful_kinds_too(objects: Objects) -> None:
    """After its grace period an object still waits for its finalizers, and for nothing else."""
    new = obj("a", running=True)
    new["metadata"]["finalizers"] = ["example.com/x"]
    await objects.create(RUNNERS, new)
    assert not (await delete(objects, RUNNERS)).gone
    ended = await delete(objects, RUNNERS, grace_period_s=0)
    assert (ended.gone, marks(ended.entry)["deletionGracePeriodSeconds"]) == (False, 0)
    await release(objects, RUNNERS)
    assert objects.find(RUNNERS, "default", "a") is None


async def test_removing_finalizers_does_not_cut_the_grace_period(objects: Objects) -> None:
    """While a grace period runs, taking the finalizers off removes nothing."""
    new = obj("a", running=True)
    new["metadata"]["finalizers"] = ["example.com/x"]
    await objects.create(RUNNERS, new)
    await delete(objects, RUNNERS)
    await release(objects, RUNNERS)
    assert objects.find(RUNNERS, "default", "a") is not None
    assert (await delete(objects, RUNNERS, grace_period_s=0)).gone


async def test_namespaces_wait_for_their_own_finalizers(objects: Objects) -> None:
    """A namespace is Terminating until its spec.finalizers are emptied through `finalize`."""
    await objects.create("namespaces", obj("going", namespace="", finalizers=["kubernetes"]))
    deleted = await objects.delete("namespaces", "", "going")
    assert (deleted.gone, deleted.entry.decode()["status"]) == (False, {"phase": "Terminating"})
    options = UpdateOptions(subresource="finalize")
    await objects.update("namespaces", "", "going", lambda old: {**old, "spec": {"finalizers": []}}, options=options)
    assert objects.find("namespaces", "", "going") is None


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_permanent_namespaces_stay(objects: Objects, name: str) -> None:
    """The built-in namespaces cannot be deleted."""
    if name != "default":
        await objects.create("namespaces", obj(name, namespace=""))
    with pytest.raises(StatusError) as refused:
        await objects.delete("namespaces", "", name)
    assert (refused.value.code, refused.value.message) == (
        403,
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )


async def test_dry_run_deletes_nothing(objects: Objects) -> None:
    """A dry run says what would be and leaves the object alone."""
    made = await held(objects, "example.com/x")
    deleted = await delete(objects, dry_run=True)
    assert (deleted.gone, deleted.entry.revision, "deletionTimestamp" in marks(deleted.entry)) == (
        False,
        made.revision,
        True,
    )
    assert objects.get(GADGETS, "default", "a") is made


async def test_collections_are_deleted_by_selection(objects: Objects) -> None:
    """The answer has the objects as they were; what is not selected stays, what is held is marked."""
    one = await objects.create(GADGETS, obj("one", labels={"x": "1"}))
    await objects.create(GADGETS, obj("two", labels={"x": "2"}))
    kept = await held(objects, "example.com/x")
    page = await objects.delete_collection(GADGETS, "default", list_options=ListOptions(label_selector="x!=2"))
    left = [(entry.name, "deletionTimestamp" in marks(entry)) for entry in objects.list(GADGETS).entries]
    assert (page.entries, page.revision, left) == ([kept, one], objects.revision, [("a", True), ("two", False)])


async def test_large_collections_are_deleted_in_portions(objects: Objects) -> None:
    """More objects than one transaction takes are all deleted."""
    for index in range(250):
        await objects.create(GADGETS, obj(f"g{index}"))
    page = await objects.delete_collection(GADGETS, "default")
    assert (len(page.entries), objects.list(GADGETS).entries) == (250, [])
