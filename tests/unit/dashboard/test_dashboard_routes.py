"""The JSON of the dashboard's routes: list, detail, decisions, what-if, reports; and parts that are away."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from dashboard_world import WEB_PATH, DashboardWorld
from podscaler.cli.main import cli
from podscaler.dashboard.server import DashboardOptions
from podscaler.observe import views
from podscaler.testing.autoscaling import spec
from podscaler.testing.cluster import HPAS, refusal
from podscaler.testing.transport import TransportFailure

LIST = "/api/autoscalers"
WEB = ("shop", "web")
SAMPLES = Path(__file__).parents[2] / "fixtures" / "dashboard"


@pytest.mark.parametrize(
    ("sample", "view"),
    [
        ("autoscalers", views.AutoscalerList),
        ("autoscaler", views.Detail),
        ("decision", views.DecisionView),
        ("what-if", views.WhatIfView),
    ],
)
def test_samples_are_views(sample: str, view: type[Any]) -> None:
    """The sample answers, which page and terminal view are tested with, have the fields of the views."""
    text = (SAMPLES / f"{sample}.json").read_bytes()
    read = msgspec.json.decode(text, type=view, strict=True)
    written = json.loads(msgspec.json.encode(read))
    assert written | {"eventId": None, "notes": None} == json.loads(text) | {"eventId": None, "notes": None}


async def test_the_list() -> None:
    """A row has the counts, the metric against its target, and the state in a word."""
    async with DashboardWorld.open() as world:
        await world.cluster.advance(15)
        status, body = await world.viewer.get(LIST)
    row = body["rows"][0]
    assert (status, body["cluster"], len(body["rows"])) == (200, "test", 1)
    assert {name: row[name] for name in ("namespace", "name", "kind", "target", "replicas", "min", "max")} == {
        "namespace": "shop",
        "name": "web",
        "kind": "HorizontalPodAutoscaler",
        "target": "Deployment/web",
        "replicas": 4,
        "min": 1,
        "max": 10,
    }
    assert row["metrics"] == [
        {"name": "cpu", "type": "Resource", "current": 100, "target": 50, "unit": "percent", "text": "100%/50%"}
    ]
    assert (row["sparkline"][-1], row["decidedBy"], body["since"]) == (4, "podscaler", world.cluster.now_ms - 15_000)


async def test_the_worst_first() -> None:
    """Rows are sorted by severity, then by namespace and name."""
    async with DashboardWorld.open() as world:
        world.cluster.cluster.put_autoscaler("lost", spec("nothing"))
        world.cluster.cluster.put_deployment("also", 1)
        world.cluster.cluster.put_pod("also-0", "also", "500m")
        world.cluster.cluster.put_autoscaler("also", spec("also"), namespace="shop")
        await world.cluster.advance(30)
        rows = (await world.viewer.get(LIST))[1]["rows"]
    assert [row["name"] for row in rows] == ["lost", "also", "web"]
    assert rows[0]["severity"] == 3


async def test_a_detail() -> None:
    """A detail has the time line, marks, pods with what their samples count for, events, conditions, YAML and lint."""
    async with DashboardWorld.open() as world:
        await world.cluster.advance(15)
        status, body = await world.viewer.get(WEB_PATH)
    assert (status, body["timeline"]["replicas"], [mark["kind"] for mark in body["decisions"]]) == (
        200,
        [2, 4],
        ["up", "same"],
    )
    assert [(pod["name"], pod["ready"], pod["requests"], pod["usage"]) for pod in body["pods"]] == [
        ("web-0", True, {"cpu": 1000}, {"cpu": 1000}),
        ("web-1", True, {"cpu": 1000}, {"cpu": 1000}),
    ]
    assert "kind: HorizontalPodAutoscaler" in body["yaml"]
    assert {each["type"] for each in body["conditions"]} >= {"AbleToScale", "ScalingActive"}
    assert any(each["reason"] == "SuccessfulRescale" for each in body["events"])


async def test_what_the_page_explains_is_what_the_command_explains(tmp_path: Path) -> None:
    """The explanation of a mark is that of `podscaler explain --recording` for the same sync, as text and as JSON."""
    async with DashboardWorld.open() as world:
        await world.cluster.advance(15)
        mark = (await world.viewer.get(WEB_PATH))[1]["decisions"][0]
        status, body = await world.viewer.get(f"{WEB_PATH}/decisions/{mark['id']}")
        kept = world.cluster.history.kept.find(WEB, mark["id"])
        assert kept is not None
        file = tmp_path / "web.recording.jsonl"
        file.write_bytes(kept.header + kept.line())
    text = CliRunner().invoke(cli, ["explain", "--recording", str(file)]).output
    data = CliRunner().invoke(cli, ["explain", "--recording", str(file), "-o", "json"]).output
    assert (status, body) == (200, {"explanation": json.loads(data), "text": text.removesuffix("\n")})


async def test_a_what_if() -> None:
    """What would be decided now and over the recorded time, as `podscaler explain --what-if` says it, and a patch."""
    async with DashboardWorld.open() as world:
        await world.cluster.advance(30)
        status, body = await world.viewer.post(f"{WEB_PATH}/what-if", {"set": ["spec.maxReplicas=3"]})
    assert (status, body["patch"], body["overTime"]["limited"]) == (200, "spec:\n  maxReplicas: 3\n", [3, 3])
    assert body["now"]["text"].startswith("With maxReplicas=3 shop/web ")
    assert (body["now"]["before"]["verdict"]["desired"], body["now"]["after"]["verdict"]["desired"]) == (4, 3)
    assert body["overTime"]["assumption"].startswith("open loop")


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"set": []}, "what-if needs assignments"),
        ({"set": ["maxReplicas"]}, "is not an assignment"),
        ({"set": ["maxReplica=3"]}, "did you mean maxReplicas?"),
        ({"set": ["maxReplicas=0"]}, "would be refused"),
        ({"set": ["maxReplicas=3"], "from": 2, "to": 1}, "ends before it begins"),
        ({}, "cannot be read"),
        (["x"], "cannot be read"),
    ],
    ids=["nothing", "no value", "misspelled", "invalid", "no range", "no body", "a list"],
)
async def test_what_ifs_that_cannot_be(question: Any, error: str) -> None:
    """The error is a sentence that says what is wrong."""
    async with DashboardWorld.open() as world:
        status, body = await world.viewer.post(f"{WEB_PATH}/what-if", question)
    assert (status, error in body["error"]) == (400, True)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?from=5&to=5", 400),
        ("?from=x", 400),
        ("?from=-1", 400),
        ("?to=99999999999999999", 400),
        ("?from=0&to=1000", 200),
        ("?from=4000000000000&to=5000000000000", 200),
    ],
    ids=["empty", "no number", "negative", "too big", "before everything", "the future"],
)
async def test_ranges_of_time(query: str, status: int) -> None:
    """A range that makes no sense has an error; one about which nothing is known has an empty time line."""
    async with DashboardWorld.open() as world:
        answer = await world.viewer.get(WEB_PATH + query)
    assert answer[0] == status
    assert status == 400 or (answer[1]["timeline"]["at"], answer[1]["decisions"]) == ([], [])


@pytest.mark.parametrize(
    "path",
    [
        "/api/autoscalers/shop/none",
        "/api/autoscalers/none/web",
        "/api/autoscalers/shop/none/decisions/1",
        f"{WEB_PATH}/decisions/1",
        f"{WEB_PATH}/decisions/%2e%2e%2fx",
        "/api/autoscalers/shop/..%2f..%2fpods",
        "/api/autoscalers/shop/%3Cscript%3E",
        "/api/autoscalers/shop/web%00",
        "/api/autoscalers/shop/web/none",
        "/api/reports/none.json",
        "/api/reports/..%2fsecret.json",
    ],
)
async def test_what_does_not_exist(path: str) -> None:
    """404 with a sentence in JSON."""
    async with DashboardWorld.open() as world:
        status, body = await world.viewer.get(path)
    assert (status, isinstance(body["error"], str)) == (404, True)


async def test_hostile_texts_are_data() -> None:
    """Names and messages with markup come as JSON text that no browser takes for a page."""
    hostile = '<img src=x onerror="alert(1)">\u2028</script>'
    async with DashboardWorld.open() as world:
        world.cluster.cluster.put_autoscaler("web", spec(), annotations={"note": hostile})
        world.cluster.cluster.put_autoscaler(hostile, spec("web"), namespace="a b")
        await world.cluster.advance(15)
        rows = (await world.viewer.get(LIST))[1]["rows"]
        async with world.viewer.session.get(world.server.url + WEB_PATH) as response:
            content_type, body = response.headers["Content-Type"], await response.json()
    assert (content_type, hostile in {row["name"] for row in rows}) == ("application/json", True)
    assert "<img src=x" in body["yaml"]


async def test_an_autoscaler_that_disappears() -> None:
    """Its pages are 404 from then on, and the list goes on without it."""
    async with DashboardWorld.open() as world:
        await world.cluster.advance(15)
        world.cluster.cluster.delete(HPAS, "web")
        await world.cluster.advance(0)
        assert (await world.viewer.get(WEB_PATH))[0] == 404
        assert (await world.viewer.get(LIST))[1]["rows"] == []


async def test_parts_that_may_not_be_read() -> None:
    """They are missing, and a note says why; the rest is shown."""
    async with DashboardWorld.open() as world:
        forbidden = refusal(403, "Forbidden", "events is forbidden")
        world.cluster.cluster.fail(forbidden, below="/api/v1/namespaces/shop/events")
        status, body = await world.viewer.get(WEB_PATH)
    assert (status, body["events"], len(body["pods"])) == (200, [], 2)
    assert "events cannot be read: events is forbidden" in body["notes"]


async def test_the_object_may_not_be_read() -> None:
    """403 names the permission that is missing."""
    async with DashboardWorld.open() as world:
        world.cluster.cluster.fail(
            refusal(403, "Forbidden", "no"), below="/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web"
        )
        status, body = await world.viewer.get(WEB_PATH)
    assert (status, body) == (403, {"error": "no", "needs": "get horizontalpodautoscalers in shop"})


async def test_the_api_server_is_lost_and_comes_back() -> None:
    """What was known is shown with a note, and everything is current again afterwards."""
    async with DashboardWorld.open() as world:
        await world.cluster.advance(15)
        world.cluster.cluster.fail(TransportFailure("connection refused"))
        await world.cluster.advance(16)
        lost = (await world.viewer.get(LIST))[0], await world.viewer.get(WEB_PATH)
        world.cluster.cluster.recover()
        await world.cluster.advance(60)
        found = await world.viewer.get(WEB_PATH)
    assert (lost[0], lost[1][0], lost[1][1]["row"]["name"]) == (200, 200, "web")
    known_before = [any("known before" in note for note in body["notes"]) for _, body in (lost[1], found)]
    assert known_before == [True, False]


async def test_nothing_is_listed_yet() -> None:
    """503 says why, and when to try again; the list is there once the API server responds."""
    forbidden = refusal(403, "Forbidden", "horizontalpodautoscalers is forbidden")
    async with DashboardWorld.open(failing=forbidden) as world:
        early = await world.viewer.get(LIST)
        world.cluster.cluster.recover()
        await world.cluster.advance(120)
        late = await world.viewer.get(LIST)
    assert (early[0], early[1]["retryMs"], late[0], len(late[1]["rows"])) == (503, 1000, 200, 1)
    assert "horizontalpodautoscalers is forbidden" in early[1]["error"]


async def test_another_controller_decides() -> None:
    """The row has the status that the built-in controller wrote, and the history what podscaler would have done."""
    async with DashboardWorld.open(dry_run=True, other_controller="warn", field_manager="podscaler-dashboard") as world:
        condition = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "m"}
        active = {
            "type": "ScalingActive",
            "status": "False",
            "reason": "FailedGetResourceMetric",
            "message": "no metrics",
        }
        status = {"currentReplicas": 2, "desiredReplicas": 2, "currentMetrics": None, "conditions": [condition, active]}
        world.cluster.cluster.report("web", status, manager="kube-controller-manager", at="2026-01-01T00:00:00Z")
        await world.cluster.advance(15)
        row = (await world.viewer.get(LIST))[1]["rows"][0]
        marks = (await world.viewer.get(WEB_PATH))[1]["decisions"]
    assert (row["decidedBy"], row["state"], row["reason"], row["replicas"]) == (
        "kube-controller-manager",
        "NoMetrics",
        "no metrics",
        2,
    )
    assert {(mark["kind"], mark["from"], mark["to"], mark["carriedOut"]) for mark in marks} == {("up", 2, 4, False)}


async def test_reports(tmp_path: Path) -> None:
    """The JSON files of the folder, newest first; links and other files are none."""
    (tmp_path / "a.json").write_text('{"a": 1}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "notes.txt").write_text("{}")
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    async with DashboardWorld.open(options=DashboardOptions(reports=tmp_path)) as world:
        listed = (await world.viewer.get("/api/reports"))[1]["reports"]
        read = [await world.viewer.get(f"/api/reports/{name}") for name in ("a.json", "broken.json", "link.json")]
    assert {each["name"] for each in listed} == {"a.json", "broken.json"}
    assert [status for status, _ in read] == [200, 404, 404]
    assert read[0][1] == {"a": 1}
