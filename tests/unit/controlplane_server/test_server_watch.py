"""Watches over HTTP: frames, bookmarks, and every way in which a watch ends."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from server_under_test import CONFIG_MAPS, VIEWER_TOKEN, Running, config_map, running_server

from patience import WITHIN_S
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import streaming_response
from podscaler.controlplane.apiserver.streaming import watch_streams

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A running server."""
    async with running_server(tmp_path) as running:
        yield running


async def next_event(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    """The next frame of a watch."""
    line = await asyncio.wait_for(answer.content.readline(), WITHIN_S)
    event: dict[str, Any] = json.loads(line)
    return event


async def until(condition: Callable[[], bool]) -> None:
    """Return once the condition holds; fail when patience ends."""
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - what is waited for is inside the server, which tells nobody
            await asyncio.sleep(0.01)


def watch(server: Running, query: str = "", **arguments: Any) -> Any:
    """A watch of the ConfigMaps in `default`."""
    return server.client.get(f"{server.url}{CONFIG_MAPS}?watch=true{query}", **arguments)


def named(event: dict[str, Any]) -> tuple[str, str]:
    """(event type, object's name)."""
    return event["type"], event["object"]["metadata"].get("name", "")


async def test_changes_arrive_as_they_happen(server: Running) -> None:
    """What was there comes first, then every change, each one frame."""
    await server.create(CONFIG_MAPS, config_map("a"))
    async with watch(server) as answer:
        seen = [named(await next_event(answer))]
        await server.create(CONFIG_MAPS, config_map("b"))
        await server.request("PUT", f"{CONFIG_MAPS}/a", json=config_map("a", x="1"))
        await server.request("DELETE", f"{CONFIG_MAPS}/b")
        seen += [named(await next_event(answer)) for _ in range(3)]
    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_old_path_form(server: Running) -> None:
    """The old watch path works, for collections and for one object."""
    for name in ("a", "b"):
        await server.create(CONFIG_MAPS, config_map(name))
    path = CONFIG_MAPS.replace("/api/v1/", "/api/v1/watch/")
    seen = []
    for target in (path, f"{path}/b"):
        async with server.client.get(f"{server.url}{target}?timeoutSeconds=1") as answer:
            lines = (await answer.text()).splitlines()
            seen.append([named(json.loads(line)) for line in lines])
    assert seen == [[("ADDED", "a"), ("ADDED", "b")], [("ADDED", "b")]]


async def test_first_table_has_the_columns(server: Running) -> None:
    """Each event is a Table of one row; only the first says what the columns are."""
    for name in ("a", "b"):
        await server.create(CONFIG_MAPS, config_map(name))
    async with watch(server, headers=TABLE) as answer:
        tables = [(await next_event(answer))["object"] for _ in range(2)]
    assert [table["kind"] for table in tables] == ["Table", "Table"]
    assert [column["name"] for column in tables[0]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert tables[1]["columnDefinitions"] is None
    assert [table["rows"][0]["cells"] for table in tables] == [["a", 0, "0s"], ["b", 0, "0s"]]


async def test_watchers_of_different_forms(server: Running) -> None:
    """Watchers of one event get it each in their own form, though it is encoded once for each."""
    async with watch(server) as whole, watch(server, headers=PARTIAL) as partial, watch(server) as other:
        await server.create(CONFIG_MAPS, config_map("a", x="1"))
        events = [await next_event(answer) for answer in (whole, partial, other)]
    assert [event["object"]["kind"] for event in events] == ["ConfigMap", "PartialObjectMetadata", "ConfigMap"]
    assert events[0] == events[2]


async def test_initial_events_end_with_a_bookmark(server: Running) -> None:
    """With sendInitialEvents, a bookmark says that everything that was there has been told."""
    await server.create(CONFIG_MAPS, config_map("a"))
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with watch(server, query) as answer:
        added, mark = await next_event(answer), await next_event(answer)
    assert (added["type"], mark) == (
        "ADDED",
        {
            "type": "BOOKMARK",
            "object": {
                "kind": "ConfigMap",
                "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": str(server.objects.revision),
                    "annotations": {"k8s.io/initial-events-end": "true"},
                },
            },
        },
    )


@pytest.mark.parametrize("headers", [{}, TABLE, PARTIAL], ids=["objects", "tables", "metadata"])
async def test_bookmarks_tell_progress(
    server: Running, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    """A watcher that sees nothing still learns how far it is, if it wants to."""
    monkeypatch.setattr(watch_streams, "BOOKMARK_PERIOD_S", 0.02)
    since = f"&resourceVersion={server.objects.revision}&allowWatchBookmarks=true"
    async with watch(server, since, headers=headers) as answer:
        await server.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
        while (event := await next_event(answer))["object"]["metadata"]["resourceVersion"] == since:
            continue
    assert event["type"] == "BOOKMARK"


async def test_a_watch_for_lists_stays_open(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event is a list, so none is sent; a change does not end the stream, whose bookmarks go on."""
    monkeypatch.setattr(watch_streams, "BOOKMARK_PERIOD_S", 0.01)
    accept = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    async with watch(server, "&allowWatchBookmarks=true", headers=accept) as answer:
        created = await server.create(CONFIG_MAPS, config_map("a"))
        events = [await next_event(answer)]
        while events[-1]["object"]["metadata"]["resourceVersion"] != created["metadata"]["resourceVersion"]:
            events.append(await next_event(answer))
    assert {event["type"] for event in events} == {"BOOKMARK"}


async def test_time_is_up(server: Running) -> None:
    """A watch ends in good order when its time is up, with a last bookmark for who wants one."""
    query = f"&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion={server.objects.revision}"
    async with watch(server, query) as answer:
        lines = [json.loads(line) async for line in answer.content]
    assert [event["type"] for event in lines] == ["BOOKMARK"]


async def test_history_is_gone(server: Running) -> None:
    """A watch from too long ago is a 200 with an ERROR event that says 410."""
    first = server.objects.revision
    await server.create(CONFIG_MAPS, config_map("a"))
    await server.objects.compact()
    async with watch(server, f"&resourceVersion={first}") as answer:
        lines = [json.loads(line) async for line in answer.content]
    [event] = lines
    assert (answer.status, event["type"], event["object"]["code"]) == (200, "ERROR", 410)


async def test_a_watcher_that_falls_behind_is_told(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """History that goes while a watch is open ends it with an ERROR event."""
    from podscaler.controlplane.storage.watching import Subscription

    async def behind(_: Subscription) -> None:
        raise StatusError("too old", code=410, reason="Expired")

    monkeypatch.setattr(Subscription, "batch", behind)
    async with watch(server) as answer:
        [event] = [json.loads(line) async for line in answer.content]
    assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")


async def test_refusals_come_before_the_stream(server: Running) -> None:
    """What is wrong with the request itself is an ordinary API error."""
    replies = [
        await server.get(f"{CONFIG_MAPS}?watch=true&labelSelector=a%20in%20("),
        await server.get(f"{CONFIG_MAPS}?watch=true&timeoutSeconds=x"),
        await server.get(f"{CONFIG_MAPS}?watch=true", headers={"Accept": "application/yaml"}),
    ]
    assert [reply.status for reply in replies] == [400, 400, 406]


def waiting(server: Running) -> int:
    """How many watchers wait in the store."""
    return len(server.objects._watchers.waiting.get("configmaps", ()))


async def test_a_client_that_leaves_is_forgotten_at_once(server: Running) -> None:
    """Nothing of a watch is left when its client has gone, even if nothing ever happens."""
    async with watch(server), watch(server):
        await until(lambda: waiting(server) == 2)
    await until(lambda: waiting(server) == 0)


async def test_a_client_that_does_not_read_is_cut_off(
    server: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A watcher that takes nothing does not hold its frames for ever; it is no failure of ours."""
    monkeypatch.setattr(streaming_response, "WRITE_TIMEOUT_S", 0.1)
    port = int(server.url.rpartition(":")[2])
    _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    head = f"GET {CONFIG_MAPS}?watch=true HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n"
    writer.write(head.encode())
    await until(lambda: waiting(server) == 1)
    for number in range(30):
        await server.create(CONFIG_MAPS, config_map(f"big-{number}", x="y" * 900_000))
    await until(lambda: waiting(server) == 0 and not server.server._streams._open_tasks)
    writer.close()
    assert caplog.text == ""


async def test_stopping_ends_watches_in_good_order(server: Running) -> None:
    """When the server stops, open watches end as if their time were up."""
    async with watch(server) as answer:
        await until(lambda: waiting(server) == 1)
        await server.server.stop()
        assert await asyncio.wait_for(answer.content.read(), WITHIN_S) == b""


async def test_many_watchers(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of watchers all get an event, which is encoded once."""
    encoded = 0
    original = watch_streams._EventEncoder._encode

    def counted(frames: watch_streams._EventEncoder, notice: Any) -> bytes:
        nonlocal encoded
        encoded += 1
        return original(frames, notice)

    monkeypatch.setattr(watch_streams._EventEncoder, "_encode", counted)
    answers = [await watch(server) for _ in range(200)]
    await until(lambda: waiting(server) == 200)
    await server.create(CONFIG_MAPS, config_map("a"))
    events = [await next_event(answer) for answer in answers]
    for answer in answers:
        answer.close()
    assert ({named(event) for event in events}, encoded) == ({("ADDED", "a")}, 1)


async def test_compaction_is_for_those_who_may_do_everything(server: Running) -> None:
    """The history is forgotten on request of a master, and of nobody else."""
    await server.create(CONFIG_MAPS, config_map("a"))
    refused = await server.request("POST", "/podscaler/compact", headers={"Authorization": f"Bearer {VIEWER_TOKEN}"})
    done = await server.request("POST", "/podscaler/compact")
    assert (refused.status, done.body) == (403, {"resourceVersion": str(server.objects.revision)})
    assert (await server.get("/podscaler/compact")).status == 405
