"""The dashboard on a real `up`: its own one, `podscaler dashboard` beside it, restarts, and tokens of other users."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboard_process import DashboardPage, DashboardProcess
from up_process import Up, eventually

from patience import COMMAND_WITHIN_S
from podscaler.base.clock import SystemClock
from podscaler.base.errors import StatusError
from podscaler.cli.dashboard.bearer_viewers import BearerViewers
from podscaler.kube.config import locate

pytestmark = pytest.mark.e2e

Object = dict[str, Any]
FLAGS = (
    "--horizontal-pod-autoscaler-sync-period=500ms",
    "--metric-resolution=500ms",
    "--horizontal-pod-autoscaler-downscale-stabilization=3s",
)
WEB = "/api/autoscalers/default/web"
CONFIG_MAP = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Up, DashboardPage]]:
    """An `up` with an autoscaler of an external metric, which wants 2 replicas, and its dashboard."""
    folder = tmp_path_factory.mktemp("up")
    users = folder / "users.csv"
    users.write_text("token-of-ann,ann,1,\n")
    instance = Up(folder / "data", flags=(*FLAGS, f"--token-auth-file={users}")).start()
    assert instance.process is not None
    assert instance.process.stdout is not None
    page = DashboardPage(instance.process.stdout)
    deploy(instance)
    eventually(lambda: replicas(page), until=lambda count: count == 2)
    yield instance, page
    assert instance.stop() == 0


def deploy(up: Up) -> None:
    """Simulated pods, and an autoscaler over an external metric that a ConfigMap states."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"runtimeClassName": "simulated", "containers": [{"name": "app", "image": "none"}]},
    }
    spec: Object = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    up.create("/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}, "spec": spec})
    labels = {"podscaler.dev/metrics": "external"}
    body = {"metadata": {"name": "queue", "labels": labels}, "data": {"queue": "{value: 20}"}}
    up.create(CONFIG_MAP, body)
    metric = {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [{"type": "External", "external": metric}],
    }
    autoscalers = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    up.create(autoscalers, {"metadata": {"name": "web"}, "spec": spec})


def replicas(page: DashboardPage) -> int | None:
    """The replicas of the only row; None: there is none yet."""
    status, body = page.get("/api/autoscalers")
    rows = body["rows"] if status == 200 else []
    return rows[0]["replicas"] if rows else None


def test_the_dashboard_of_up(shown: tuple[Up, DashboardPage]) -> None:
    """A detail has the rescale as a mark and as an event, the pods, the metric and the YAML."""
    _, page = shown
    detail = eventually(lambda: page.get(WEB)[1], until=lambda found: len(found["pods"]) == 2 and found["events"])
    ups = [mark for mark in detail["decisions"] if mark["kind"] == "up"]
    assert [(mark["from"], mark["to"], mark["carriedOut"]) for mark in ups] == [(1, 2, True)]
    assert detail["row"]["metrics"][0]["text"] == "10/10 (avg)"
    assert "SuccessfulRescale" in {event["reason"] for event in detail["events"]}
    assert (detail["notes"], "name: web" in detail["yaml"]) == ([], True)


def test_one_source_of_explanations(shown: tuple[Up, DashboardPage], tmp_path: Path) -> None:
    """The trace of a mark, given to `podscaler explain -`, is explained in the same words."""
    _, page = shown
    mark = page.get(WEB)[1]["decisions"][0]
    body = page.get(f"{WEB}/decisions/{mark['id']}")[1]
    command = [sys.executable, "-m", "podscaler", "explain", "-"]
    done = subprocess.run(
        command,
        input=json.dumps(body["explanation"]),
        capture_output=True,
        text=True,
        timeout=COMMAND_WITHIN_S,
        check=True,
    )
    assert (done.stdout.rstrip("\n"), body["explanation"]["summary"]) == (body["text"], mark["summary"])


def test_a_what_if(shown: tuple[Up, DashboardPage]) -> None:
    """What another maximum would do now, and a patch for it."""
    _, page = shown
    status, body = page.post(f"{WEB}/what-if", {"set": ["maxReplicas=1"]})
    assert (status, body["now"]["after"]["verdict"]["desired"]) == (200, 1)
    assert body["patch"] == "spec:\n  maxReplicas: 1\n"


def test_a_scale_is_seen_at_once(shown: tuple[Up, DashboardPage]) -> None:
    """After the queue has grown, events bring the new count, the points and the mark."""
    up, page = shown
    before = replicas(page)
    events = page.events("?namespace=default&name=web")
    next(events)
    up.patch(f"{CONFIG_MAP}/queue", {"data": {"queue": "{value: 40}"}})
    seen: set[Any] = set()
    for name, data in events:
        if name == "rows":
            seen.update(("row", row["replicas"]) for row in data)
        if name == "timeline":
            seen.update((mark["kind"], mark["from"], mark["to"]) for mark in data["decisions"])
        if {("row", 4), ("up", before, 4)} <= seen:
            break
    events.close()  # type: ignore[attr-defined]  # a generator


def test_beside_the_controller_and_after_a_restart(shown: tuple[Up, DashboardPage], tmp_path: Path) -> None:
    """`podscaler dashboard` decides and writes nothing; with --record what it saw is there again after a restart."""
    up, _ = shown
    flags = ("--record", str(tmp_path / "seen.recording.jsonl.gz"))
    first = DashboardProcess(up, *flags)
    marks = eventually(lambda: first.page.get(WEB)[1].get("decisions"))
    row = first.page.get("/api/autoscalers")[1]["rows"][0]
    eventually(lambda: Path(flags[1]).stat().st_size, until=lambda size: size > 1000)
    assert first.stop() == 0
    second = DashboardProcess(up, *flags)
    again = eventually(lambda: second.page.get(WEB)[1].get("decisions"))
    assert second.stop() == 0
    assert (row["decidedBy"].startswith("podscaler"), marks[0]["carriedOut"]) == (True, False)
    assert again[0]["id"] == marks[0]["id"]


def test_the_api_server_is_lost_and_found(tmp_path: Path) -> None:
    """What was known stays visible with a note; after a restart of the server everything is current by itself."""
    up = Up(tmp_path / "data", flags=FLAGS).start()
    deploy(up)
    port = up.data_dir.joinpath("port").read_text()
    process = DashboardProcess(up)
    try:
        eventually(lambda: replicas(process.page), until=lambda count: count == 2)
        up.kill()
        lost = eventually(lambda: process.page.get(WEB), until=lambda answer: bool(answer[1].get("notes")))
        up.start()
        found = eventually(lambda: process.page.get(WEB), until=lambda answer: answer[1].get("notes") == [])
    finally:
        status = process.stop()
        up.stop()
    assert (lost[0], found[0], found[1]["row"]["replicas"], status) == (200, 200, 2, 0)
    assert up.data_dir.joinpath("port").read_text() == port


def test_tokens_of_other_users(shown: tuple[Up, DashboardPage]) -> None:
    """The API server decides what the user of a token may see, also after a role is granted; unknown tokens are 401."""
    up, _ = shown
    config = locate.find_config(str(up.kubeconfig))

    async def seen() -> bool:
        viewer = await BearerViewers(config, SystemClock()).open("token-of-ann")
        try:
            return await viewer.may_see("default")
        finally:
            await viewer.close()

    async def unknown() -> int:
        with pytest.raises(StatusError) as error:
            await BearerViewers(config, SystemClock()).open("no-such-token")
        return error.value.code

    before = asyncio.run(seen())
    grant_view(up, "ann")
    after = eventually(lambda: asyncio.run(seen()))
    assert (before, after, asyncio.run(unknown())) == (False, True, 401)


def grant_view(up: Up, name: str) -> None:
    """Let ann view the namespace default, by a binding of that name."""
    body = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}],
    }
    up.create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", body)


def test_a_user_of_one_namespace(shown: tuple[Up, DashboardPage], tmp_path: Path) -> None:
    """Who may not list all namespaces is told so, and sees one namespace with --namespace."""
    up, _ = shown
    grant_view(up, "ann-again")
    config = yaml.safe_load(up.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "token-of-ann"}
    kubeconfig = tmp_path / "ann.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    everywhere = DashboardProcess(up, kubeconfig=kubeconfig)
    refused = eventually(
        lambda: everywhere.page.get("/api/autoscalers"), until=lambda answer: "forbidden" in str(answer[1])
    )
    here = DashboardProcess(up, "--namespace", "default", kubeconfig=kubeconfig)
    row = eventually(lambda: replicas(here.page))
    marks = eventually(lambda: here.page.get(WEB)[1].get("decisions"))
    assert (refused[0], row is not None, len(marks) > 0) == (503, True, True)
    assert (everywhere.stop(), here.stop()) == (0, 0)
