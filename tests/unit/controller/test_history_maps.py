"""The ConfigMaps of histories: reading, changing, and looking in from outside."""

import msgspec
import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controller.history import history_maps, history_record
from podscaler.controller.history.history_maps import ConfigMapContents, ForeignConfigMap, HistoryMaps
from podscaler.controller.history.history_record import Heartbeat, HistoryRecord
from podscaler.core.model.history import History, Recommendation
from podscaler.kube.client.client import Client
from podscaler.testing import VirtualClock
from podscaler.testing.cluster import refusal
from podscaler.testing.transport import ScriptedTransport, json_answer

NOW = 1_767_225_600 * NANOSECONDS
FOLDER = "/api/v1/namespaces/kube-system/configmaps"
OURS = {"labels": {"podscaler.dev/history": "v1"}}
PAST = History((Recommendation(3, NOW - 100),))
RECORD = history_record.encode(HistoryRecord("u1", "w", NOW, PAST))
WEB = ("shop", "web")
MAP = f"{FOLDER}/podscaler-history-03"


@pytest.fixture
def transport() -> ScriptedTransport:
    """A server without ConfigMaps."""
    made = ScriptedTransport()
    for name in ("podscaler-history", "podscaler-history-03"):
        for method in ("GET", "PATCH"):
            made.on(method, f"{FOLDER}/{name}", refusal(404, "NotFound", "none"))
    return made


@pytest.fixture
def client(transport: ScriptedTransport) -> Client:
    """A client of it."""
    return Client(transport, VirtualClock())


def _map(**data: str) -> object:
    return json_answer({"metadata": OURS, "data": data})


async def test_what_does_not_exist_is_empty(client: Client) -> None:
    """A ConfigMap is made when there is something to keep."""
    assert await HistoryMaps(client).read("podscaler-history-03") == ConfigMapContents({}, None)


async def test_what_is_not_ours_is_not_read(client: Client, transport: ScriptedTransport) -> None:
    """A ConfigMap of our name without our label is somebody else's; one that is none is an error too."""
    transport.on("GET", MAP, json_answer({"metadata": {}, "data": {"a": "b"}}), json_answer([]))
    for said in ("is not podscaler's", "cannot be read"):
        with pytest.raises(StatusError, match=said):
            await HistoryMaps(client).read("podscaler-history-03")


async def test_updates_are_of_one_version(client: Client, transport: ScriptedTransport) -> None:
    """The patch names the version that was read, and the answer the one that it made; without one it is created."""
    transport.on("PATCH", MAP, json_answer({"metadata": {"resourceVersion": "8"}}))
    transport.on("POST", FOLDER, json_answer({"metadata": {"resourceVersion": "3"}}, 201))
    maps = HistoryMaps(client)
    versions = [await maps.update("podscaler-history-03", {"a": "x", "b": None}, version) for version in ("7", None)]
    patch, create = transport.requests
    assert (versions, msgspec.json.decode(patch.body or b""), msgspec.json.decode(create.body or b"")["data"]) == (
        ["8", "3"],
        {"metadata": {"resourceVersion": "7"}, "data": {"a": "x", "b": None}},
        {"a": "x"},
    )


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [(409, "Conflict", True), (409, "AlreadyExists", True), (404, "NotFound", True), (403, "Forbidden", False)],
)
def test_what_is_read_again(code: int, reason: str, expected: bool) -> None:
    """A ConfigMap that was changed, made or deleted since it was read."""
    assert history_maps.is_outdated(StatusError("", code=code, reason=reason)) is expected


async def test_changes_are_merge_patches(client: Client, transport: ScriptedTransport) -> None:
    """Single entries of the version that was read are set and removed."""
    transport.on("GET", MAP, json_answer({"metadata": OURS | {"resourceVersion": "7"}, "data": {}}))
    transport.on("PATCH", MAP, json_answer({}))
    await HistoryMaps(client).change("podscaler-history-03", {"a": "x", "b": None})
    _, request = transport.requests
    assert (request.headers["Content-Type"], msgspec.json.decode(request.body or b"")) == (
        "application/merge-patch+json",
        {"metadata": {"resourceVersion": "7"}, "data": {"a": "x", "b": None}},
    )


async def test_what_is_not_ours_is_not_changed(client: Client, transport: ScriptedTransport) -> None:
    """A ConfigMap of our name without our label stays as it is."""
    transport.on("GET", MAP, json_answer({"metadata": {"resourceVersion": "7"}, "data": {"a": "b"}}))
    with pytest.raises(
        ForeignConfigMap, match=r"^the ConfigMap podscaler-history-03 is not podscaler's: it lacks the label"
    ):
        await HistoryMaps(client).change("podscaler-history-03", {"a": "x"})
    assert [request.method for request in transport.requests] == ["GET"]


async def test_a_change_is_made_for_the_version_that_another_writer_left(
    client: Client, transport: ScriptedTransport
) -> None:
    """A change that is refused as outdated is made again for what is there by then, a few times."""
    versions = [json_answer({"metadata": OURS | {"resourceVersion": each}}) for each in ("7", "8")]
    transport.on("GET", MAP, *versions)
    transport.on("PATCH", MAP, refusal(409, "Conflict", "changed"), json_answer({}))
    await HistoryMaps(client).change("podscaler-history-03", {"a": "x"})
    patches = [request for request in transport.requests if request.method == "PATCH"]
    assert [msgspec.json.decode(each.body or b"")["metadata"] for each in patches] == [
        {"resourceVersion": "7"},
        {"resourceVersion": "8"},
    ]


async def test_a_change_that_is_always_outdated_fails(client: Client, transport: ScriptedTransport) -> None:
    """The number of attempts is limited."""
    transport.on("GET", MAP, json_answer({"metadata": OURS | {"resourceVersion": "7"}}))
    transport.on("PATCH", MAP, refusal(409, "Conflict", "changed"))
    with pytest.raises(StatusError, match="changed"):
        await HistoryMaps(client).change("podscaler-history-03", {"a": "x"})
    assert len(transport.asked("PATCH")) == history_maps.UPDATE_ATTEMPTS


async def test_the_first_change_makes_it(client: Client, transport: ScriptedTransport) -> None:
    """With the label that makes it ours; what would be removed is left out."""
    transport.on("POST", FOLDER, json_answer({}, 201))
    await HistoryMaps(client).change("podscaler-history-03", {"a": "x", "b": None})
    assert msgspec.json.decode(transport.requests[-1].body or b"") == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "name": "podscaler-history-03",
            "namespace": "kube-system",
            "labels": {"app.kubernetes.io/managed-by": "podscaler", "podscaler.dev/history": "v1"},
        },
        "data": {"a": "x"},
    }


async def test_a_heartbeat_that_makes_no_sense(
    client: Client, transport: ScriptedTransport, caplog: pytest.LogCaptureFixture
) -> None:
    """It is left out with a warning."""
    transport.on("GET", f"{FOLDER}/podscaler-history", _map(a=history_record.encode_heartbeat(Heartbeat(NOW)), b="?"))
    assert await HistoryMaps(client).heartbeats() == {"a": Heartbeat(NOW)}
    assert "the heartbeat b" in caplog.text


@pytest.mark.parametrize(
    ("text", "uid", "expected"),
    [
        (RECORD, None, PAST),
        (RECORD, "u1", PAST),
        (RECORD, "u2", None),
        ("?", None, None),
        (history_record.encode(HistoryRecord("u1", "w", NOW + 3600 * NANOSECONDS, PAST)), None, None),
        (None, None, None),
    ],
    ids=["any object", "this object", "another object", "nonsense", "the future", "no entry"],
)
async def test_load_history(
    client: Client, transport: ScriptedTransport, text: str | None, uid: str | None, expected: History | None
) -> None:
    """What the controller of a cluster remembers, for whoever explains it."""
    transport.on("GET", MAP, _map(**({"shop.web": text} if text else {})))
    assert await history_maps.load_history(client, WEB, now_ns=NOW, uid=uid) == expected
