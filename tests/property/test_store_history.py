"""Properties of the store: whatever is written, its past, its watches and its file tell the same story."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podscaler.base.errors import StatusError
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.change_log import Retention
from podscaler.controlplane.storage.options import ListOptions
from podscaler.controlplane.storage.store import Store, open_store, run_inline
from podscaler.testing import VirtualClock
from podscaler.testing.kinds import KINDS, obj

GADGETS = "gadgets.example.com"
NAMESPACE_LIST = ("a", "a-b")
State = dict[str, tuple[int, str]]
Operation = tuple[str, str, str, int]

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete"]),
        st.sampled_from(NAMESPACE_LIST),
        st.sampled_from(["x", "y", "z"]),
        st.integers(0, 3),
    ),
    max_size=40,
)


async def apply(objects: Objects, operation: Operation) -> None:
    """Create, change or delete one of a few gadgets; what does not apply is refused."""
    verb, namespace, name, size = operation
    try:
        if verb == "delete":
            await objects.delete(GADGETS, namespace, name)
        elif objects.find(GADGETS, namespace, name) is None:
            await objects.create(GADGETS, obj(name, namespace=namespace, size=size))
        else:
            await objects.update(GADGETS, namespace, name, lambda old: {**old, "spec": {"size": size}})
    except StatusError as error:
        if error.code != 404:
            raise


def state(objects: Objects, options: ListOptions, namespace: str = "") -> State:
    """What a list shows: revision and body by key."""
    page = objects.list(GADGETS, namespace, options=options)
    return {entry.key: (entry.revision, entry.body.decode()) for entry in page.entries}


async def replayed(objects: Objects, start: State, revision: int) -> State:
    """What a watcher that knew `start` at `revision` knows after it has heard everything since."""
    known = dict(start)
    watch = objects.watch(GADGETS, options=ListOptions(resource_version=str(revision)))
    last = revision
    while watch.revision < objects.revision:
        for event in (await watch.batch()).events:
            assert event.entry.revision > last
            last = event.entry.revision
            assert (event.type == "ADDED") == (event.entry.key not in known)
            if event.type == "DELETED":
                del known[event.entry.key]
            else:
                known[event.entry.key] = (event.entry.revision, event.entry.body.decode())
    return known


async def open_objects(directory: Path, retention: Retention) -> tuple[Store, Objects]:
    """The store in `directory`, and its objects."""
    store = await open_store(directory, VirtualClock(), retention=retention, run=run_inline, is_synced=False)
    return store, Objects(store, KINDS)


async def check_history(directory: Path, operations: list[Operation], retention: Retention) -> None:
    """Every state that the log still covers can be listed and replayed from, now and after a restart."""
    store, objects = await open_objects(directory, retention)
    for namespace in NAMESPACE_LIST:
        await objects.create("namespaces", obj(namespace, namespace=""))
    states: dict[int, State] = {objects.revision: state(objects, ListOptions())}
    for operation in operations:
        await apply(objects, operation)
        states[objects.revision] = state(objects, ListOptions())
    for _ in range(2):
        newest = state(objects, ListOptions())
        assert newest == states[objects.revision]
        for revision, expected in states.items():
            if revision >= store.log.compacted_revision:
                exact = ListOptions(resource_version=str(revision), resource_version_match="Exact")
                assert state(objects, exact) == expected
                in_one = {key: value for key, value in expected.items() if key.startswith("a/")}
                assert state(objects, exact, "a") == in_one
                assert await replayed(objects, expected, revision) == newest
        await store.close()
        store, objects = await open_objects(directory, retention)
    await store.close()


@settings(max_examples=60, deadline=None)
@given(operations=OPERATIONS, count=st.integers(1, 60))
def test_history_is_one_story(operations: list[Operation], count: int) -> None:
    """Lists at old revisions, watches from them, and both after a restart agree with what was seen at the time."""
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(check_history(Path(directory), operations, Retention(count=count)))
