"""Watches: what is told, in which order, from when on."""

import asyncio

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.options import ListOptions
from podscaler.controlplane.storage.watching import EntryEvent, EventBatch, Subscription
from podscaler.testing.kinds import obj

GADGETS = "gadgets.example.com"
NOT_OLDER = "NotOlderThan"


def told(batch: EventBatch) -> list[tuple[str, str, int]]:
    """Type, name and revision of each event."""
    return [(event.type, event.entry.name, event.entry.revision) for event in batch.events]


async def is_silent(subscription: Subscription) -> bool:
    """Whether there is nothing to tell now."""
    waiting = asyncio.ensure_future(subscription.batch())
    for _ in range(5):
        await asyncio.sleep(0)
    if waiting.done():
        return False
    waiting.cancel()
    return True


async def paint(objects: Objects, name: str, colour: str) -> None:
    """Change a gadget."""
    await objects.update(GADGETS, "default", name, lambda old: {**old, "spec": {"colour": colour}})


async def test_unset_version_begins_with_what_there_is(objects: Objects) -> None:
    """First an ADDED for each object, in key order, then the changes."""
    await objects.create(GADGETS, obj("b"))
    await objects.create(GADGETS, obj("a"))
    watch = objects.watch(GADGETS)
    first = await watch.batch()
    await paint(objects, "a", "red")
    await objects.delete(GADGETS, "default", "b")
    assert (told(first), first.initial_done, first.revision) == ([("ADDED", "a", 4), ("ADDED", "b", 3)], True, 4)
    assert told(await watch.batch()) == [("MODIFIED", "a", 5), ("DELETED", "b", 6)]


async def test_initial_events_end_also_where_there_are_none(objects: Objects) -> None:
    """An empty collection still says when its initial events are over: the bookmark needs it."""
    batch = await objects.watch(GADGETS).batch()
    assert batch == EventBatch([], objects.revision, initial_done=True)


async def test_many_initial_events_come_in_portions(objects: Objects) -> None:
    """A large collection does not come at once; only the last portion ends the initial events."""
    for index in range(501):
        await objects.create(GADGETS, obj(f"g{index:03}"))
    watch = objects.watch(GADGETS)
    batches = [await watch.batch(), await watch.batch()]
    assert [(len(batch.events), batch.initial_done) for batch in batches] == [(500, False), (1, True)]


async def test_version_resumes_after_it(objects: Objects) -> None:
    """From a version on, every later change comes exactly once, those of the past first."""
    made = await objects.create(GADGETS, obj("a"))
    await paint(objects, "a", "red")
    watch = objects.watch(GADGETS, options=ListOptions(resource_version=str(made.revision)))
    past = await watch.batch()
    await objects.delete(GADGETS, "default", "a")
    assert (told(past), told(await watch.batch())) == ([("MODIFIED", "a", 4)], [("DELETED", "a", 5)])


async def test_deleted_objects_are_shown_as_they_were(objects: Objects) -> None:
    """DELETED carries the last state with the resourceVersion of the deletion."""
    await objects.create(GADGETS, obj("a", colour="red"))
    watch = objects.watch(GADGETS, options=ListOptions(resource_version=str(objects.revision)))
    await objects.delete(GADGETS, "default", "a")
    (event,) = (await watch.batch()).events
    shown = event.entry.decode()
    assert (shown["spec"], shown["metadata"]["resourceVersion"]) == ({"colour": "red"}, str(objects.revision))
    assert "deletionTimestamp" not in shown["metadata"]


@pytest.mark.parametrize(
    "options",
    [ListOptions(field_selector="spec.colour=red"), ListOptions(label_selector="colour=red")],
    ids=["by field", "by label"],
)
async def test_selection_makes_the_type(objects: Objects, options: ListOptions) -> None:
    """An object that enters the selection is ADDED, one that leaves it DELETED as it last was in it."""

    async def turn(colour: str) -> None:
        def change(old: dict[str, object]) -> dict[str, object]:
            return {**old, "metadata": {"name": "a", "labels": {"colour": colour}}, "spec": {"colour": colour}}

        await objects.update(GADGETS, "default", "a", change)

    watch = objects.watch(GADGETS, options=options)
    await watch.batch()
    await objects.create(GADGETS, obj("a", labels={"colour": "grey"}, colour="grey"))
    await turn("red")
    await objects.update(GADGETS, "default", "a", lambda old: {**old, "spec": {"colour": "red", "size": 1}})
    await turn("blue")
    await turn("green")
    batch = await watch.batch()
    assert [(event.type, event.entry.decode()["spec"]["colour"]) for event in batch.events] == [
        ("ADDED", "red"),
        ("MODIFIED", "red"),
        ("DELETED", "red"),
    ]
    assert batch.events[-1].entry.revision == objects.revision - 1


async def test_namespaces_do_not_disturb_each_other(objects: Objects) -> None:
    """A watch of a namespace is not woken by others, and its bookmark still moves on."""
    await objects.create("namespaces", obj("other", namespace=""))
    watch = objects.watch(GADGETS, "other")
    await watch.batch()
    waiting = asyncio.ensure_future(watch.batch())
    await asyncio.sleep(0)
    await objects.create(GADGETS, obj("a"))
    assert (waiting.done(), watch.revision) == (False, objects.revision)
    await objects.create(GADGETS, obj("b", namespace="other"))
    assert told(await waiting) == [("ADDED", "b", objects.revision)]


async def test_writes_that_change_nothing_are_not_told(objects: Objects) -> None:
    """A no-op update is no event."""
    await objects.create(GADGETS, obj("a", colour="red"))
    watch = objects.watch(GADGETS, options=ListOptions(resource_version=str(objects.revision)))
    await paint(objects, "a", "red")
    assert await is_silent(watch)


async def test_send_initial_events(objects: Objects) -> None:
    """True begins with what there is, however old the version; false with the future, also without a version."""
    await objects.create(GADGETS, obj("a"))
    await objects.compact()
    yes = ListOptions(send_initial_events=True, resource_version_match=NOT_OLDER, resource_version="1")
    assert told(await objects.watch(GADGETS, options=yes).batch()) == [("ADDED", "a", 3)]
    no = ListOptions(send_initial_events=False, resource_version_match=NOT_OLDER)
    assert await is_silent(objects.watch(GADGETS, options=no))


async def test_compacted_versions_are_expired(objects: Objects) -> None:
    """A version before the retained history is a 410 that names it and the oldest one."""
    await objects.create(GADGETS, obj("a"))
    floor = await objects.compact()
    with pytest.raises(StatusError) as refused:
        objects.watch(GADGETS, options=ListOptions(resource_version="1"))
    assert (refused.value.code, refused.value.reason) == (410, "Expired")
    assert refused.value.message == f"too old resource version: 1 ({floor})"
    assert await is_silent(objects.watch(GADGETS, options=ListOptions(resource_version=str(floor))))


async def test_watchers_that_fall_behind_are_cut(objects: Objects) -> None:
    """A watcher whose next change is gone is told so, once it asks; the others go on."""
    slow, quick = objects.watch(GADGETS), objects.watch(GADGETS)
    await slow.batch()
    await quick.batch()
    await objects.create(GADGETS, obj("a"))
    await quick.batch()
    await objects.compact()
    await objects.create(GADGETS, obj("b"))
    assert told(await quick.batch()) == [("ADDED", "b", 4)]
    with pytest.raises(StatusError) as refused:
        await slow.batch()
    assert refused.value.code == 410


async def test_future_versions_are_not_waited_for(objects: Objects) -> None:
    """A watch from a version still to come tells only what comes after it."""
    watch = objects.watch(GADGETS, options=ListOptions(resource_version=str(objects.revision + 1)))
    await objects.create(GADGETS, obj("a"))
    assert await is_silent(watch)
    await objects.create(GADGETS, obj("b"))
    assert told(await watch.batch()) == [("ADDED", "b", 4)]


async def test_cancelled_batches_lose_nothing(objects: Objects) -> None:
    """A reader that stops waiting finds the next change all the same."""
    watch = objects.watch(GADGETS)
    await watch.batch()
    assert await is_silent(watch)
    await objects.create(GADGETS, obj("a"))
    assert told(await watch.batch()) == [("ADDED", "a", 3)]


async def test_frames_are_encoded_once(objects: Objects) -> None:
    """All watchers of an event share its encoded form; another form, or another type, is encoded for itself."""
    encoded: list[str] = []

    def encode(event: EntryEvent) -> bytes:
        encoded.append(event.type)
        return event.entry.body

    watches = [objects.watch(GADGETS) for _ in range(100)]
    painted = objects.watch(GADGETS, options=ListOptions(field_selector="spec.colour=red"))
    for watch in [*watches, painted]:
        await watch.batch()
    await objects.create(GADGETS, obj("a", colour="grey"))
    await paint(objects, "a", "red")
    batches = [await watch.batch() for watch in [*watches, painted]]
    for batch in batches:
        for event in batch.events:
            event.encoded("v1", encode)
    assert encoded == ["ADDED", "MODIFIED", "ADDED"]


WHERE = "resourceVersionMatch"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(
            ListOptions(send_initial_events=True),
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            id="initial events without match",
        ),
        pytest.param(
            ListOptions(resource_version="0", resource_version_match=NOT_OLDER),
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            id="match without initial events",
        ),
    ],
)
async def test_options_that_do_not_go_together(objects: Objects, options: ListOptions, text: str) -> None:
    """Watch options are refused in upstream's words."""
    with pytest.raises(StatusError) as refused:
        objects.watch(GADGETS, options=options)
    message = f'ListOptions.meta.k8s.io "" is invalid: {WHERE}: Forbidden: {text}'
    assert (refused.value.code, refused.value.message) == (422, message)


class Reader:
    """A receiver that keeps what it takes.

    Args:
        has_room: what it says about itself.
        error: what it raises instead of taking.
    """

    def __init__(self, *, has_room: bool = True, error: Exception | None = None) -> None:
        self._has_room = has_room
        self._error = error
        self.taken: list[list[tuple[str, str, int]]] = []

    def has_room(self) -> bool:
        """As it was told."""
        return self._has_room

    def take(self, batch: EventBatch) -> None:
        """Keep it."""
        if self._error is not None:
            raise self._error
        self.taken.append(told(batch))


async def waiting_with(objects: Objects, reader: Reader) -> "asyncio.Task[EventBatch]":
    """The task that waits for a batch of a watch with that receiver."""
    watch = objects.watch(GADGETS, options=ListOptions(resource_version=str(objects.revision)))
    watch.receiver = reader
    waiting = asyncio.create_task(watch.batch())
    await asyncio.sleep(0)
    return waiting


async def test_a_receiver_is_told_at_the_commit(objects: Objects) -> None:
    """Who waits for a batch waits on while its receiver takes what comes, each change once."""
    waiting = await waiting_with(objects, reader := Reader())
    await objects.create(GADGETS, obj("a"))
    await paint(objects, "a", "red")
    assert (waiting.done(), reader.taken) == (False, [[("ADDED", "a", 3)], [("MODIFIED", "a", 4)]])
    waiting.cancel()


@pytest.mark.parametrize(
    "reader", [Reader(has_room=False), Reader(error=ValueError("broken"))], ids=["no room", "fails"]
)
async def test_what_a_receiver_does_not_take_comes_as_a_batch(objects: Objects, reader: Reader) -> None:
    """Nothing is lost where the receiver has no room or fails."""
    waiting = await waiting_with(objects, reader)
    await objects.create(GADGETS, obj("a"))
    assert (told(await waiting), reader.taken) == ([("ADDED", "a", 3)], [])


@pytest.mark.parametrize("is_early", [True, False], ids=["before it waits", "while it waits"])
async def test_an_interrupted_watch_gives_an_empty_batch(objects: Objects, *, is_early: bool) -> None:
    """It says once how far it is, and then waits again."""
    watch = objects.watch(GADGETS, options=ListOptions(resource_version=str(objects.revision)))
    if is_early:
        watch.interrupt()
    waiting = asyncio.create_task(watch.batch())
    await asyncio.sleep(0)
    if not is_early:
        watch.interrupt()
    assert await waiting == EventBatch([], objects.revision)
    assert await is_silent(watch)
