"""`podscaler list` on an API server: states and metrics by any controller, problems first, what may not be read."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_server_world import SPEC, ApiServerWorld, Object, named
from click.testing import CliRunner, Result

from podscaler.cli.main import cli
from podscaler.kube.transport import http_transport
from podscaler.testing.transport import ScriptedTransport, json_answer

HPAS = "horizontalpodautoscalers.autoscaling"
OTHER = "kube-controller-manager"
SINCE = "2026-01-01T00:00:00Z"
CPU_METRIC: Object = {
    "type": "Resource",
    "resource": {"name": "cpu", "current": {"averageUtilization": 63, "averageValue": "630m"}},
}


def condition(kind: str, status: str, reason: str, message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


ABLE = condition("AbleToScale", "True", "ReadyForNewScale")
ACTIVE = condition("ScalingActive", "True", "ValidMetricFound")
STEADY = [ABLE, ACTIVE, condition("ScalingLimited", "False", "DesiredWithinRange")]
AT_MAXIMUM = [ABLE, ACTIVE, condition("ScalingLimited", "True", "TooManyReplicas")]
BROKEN = [ABLE, condition("ScalingActive", "False", "FailedGetResourceMetric", "no metrics returned")]


async def add(world: ApiServerWorld, name: str, conditions: list[Object], *, current: list[Object]) -> None:
    """An autoscaler from 1 to 10 whose status has these conditions and metrics, and 5 replicas."""
    registry = world.opened.registry
    made = await registry.create(HPAS, named(name, spec=SPEC) | {"apiVersion": "autoscaling/v2"})
    status = {"currentReplicas": 5, "desiredReplicas": 5, "currentMetrics": current, "conditions": conditions}
    await registry.update(HPAS, made | {"status": status}, subresource="status")


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ApiServerWorld]:
    """A server with a steady autoscaler, two with problems, and one that no controller has seen."""
    made = ApiServerWorld(tmp_path)
    await made.start_server()
    await add(made, "api", AT_MAXIMUM, current=[CPU_METRIC])
    await add(made, "jobs", BROKEN, current=[])
    await add(made, "web", STEADY, current=[CPU_METRIC])
    await made.opened.registry.create(HPAS, named("new", spec=SPEC) | {"apiVersion": "autoscaling/v2"})
    yield made
    await made.close()


async def run(world: ApiServerWorld, *arguments: str) -> Result:
    """The command against the server."""
    words = ["list", "--kubeconfig", str(world.folder / "kubeconfig"), *arguments]
    return await asyncio.to_thread(CliRunner().invoke, cli, words)


async def table(world: ApiServerWorld, *arguments: str) -> list[list[str]]:
    """The cells of the table; ages are `AGE`."""
    result = await run(world, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [re.split(r" {3,}", line) for line in result.stdout.splitlines()]
    return [["AGE" if re.fullmatch(r"\d+[dhms]\w*", cell) else cell for cell in row] for row in rows]


HEADER = ["NAME", "STATE", "REPLICAS", "DESIRED", "MIN", "MAX", "TARGETS", "SINCE"]
MAXIMUM_REASON = "its metrics ask for more than maxReplicas, which is 10"


async def test_all_of_a_namespace(world: ApiServerWorld) -> None:
    """The context's namespace; what nobody has reported is not known."""
    assert await table(world) == [
        HEADER,
        ["api", "AtMaximum", "5", "5", "1", "10", "cpu: 63%/50%", "AGE"],
        ["jobs", "NoMetrics", "5", "-", "1", "10", "cpu: <unknown>/50%", "AGE"],
        ["new", "Unknown", "-", "-", "1", "10", "cpu: <unknown>/50%", "<unknown>"],
        ["web", "Steady", "5", "5", "1", "10", "cpu: 63%/50%", "AGE"],
    ]


async def test_problems_come_worst_first_with_their_reasons(world: ApiServerWorld) -> None:
    """A steady one is no problem."""
    assert await table(world, "-A", "--problem") == [
        ["NAMESPACE", *HEADER, "REASON"],
        ["default", "jobs", "NoMetrics", "5", "-", "1", "10", "cpu: <unknown>/50%", "AGE", "no metrics returned"],
        ["default", "api", "AtMaximum", "5", "5", "1", "10", "cpu: 63%/50%", "AGE", MAXIMUM_REASON],
        [
            *["default", "new", "Unknown", "-", "-", "1", "10", "cpu: <unknown>/50%", "<unknown>"],
            "no controller has written its status",
        ],
    ]


async def test_no_problems(world: ApiServerWorld) -> None:
    """A sentence, with how many there are."""
    for name in ("api", "jobs", "new"):
        await world.opened.registry.delete(HPAS, "default", name)
    result = await run(world, "--problem")
    assert (result.exit_code, result.stdout) == (0, "no problems: 1 autoscaler in the namespace default\n")


async def test_none_at_all(world: ApiServerWorld) -> None:
    """A namespace without autoscalers."""
    result = await run(world, "-n", "empty")
    assert (result.exit_code, result.stdout) == (0, "there are no autoscalers in the namespace empty\n")


async def test_the_wide_table_names_target_and_controller(world: ApiServerWorld) -> None:
    """Who wrote the status is known by managedFields."""
    await world.define_pod_autoscalers()
    spec = {**SPEC, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "custom"}}
    custom: dict[str, Any] = {"apiVersion": "podscaler.dev/v1alpha1", "kind": "PodAutoscaler"}
    made = await world.opened.registry.create("podautoscalers.podscaler.dev", custom | named("custom", spec=spec))
    status = {"currentReplicas": 5, "desiredReplicas": 6, "conditions": STEADY}
    entry = {"manager": OTHER, "operation": "Update", "subresource": "status", "time": SINCE}
    metadata = made["metadata"] | {"managedFields": [entry | {"apiVersion": "podscaler.dev/v1alpha1"}]}
    await world.opened.registry.update(
        "podautoscalers.podscaler.dev", made | {"metadata": metadata, "status": status}, subresource="status"
    )
    rows = await table(world, "-o", "wide")
    assert rows[0] == [*HEADER, "REFERENCE", "DECIDED BY", "REASON"]
    assert rows[2] == [
        *["podautoscaler/custom", "ScalingUp", "5", "6", "1", "10", "cpu: <unknown>/50%", "<unknown>"],
        *["Deployment/custom", OTHER, "from 5 to 6"],
    ]


async def test_json_has_the_names_of_the_dashboard(world: ApiServerWorld) -> None:
    """Instants in milliseconds, null for what is not known."""
    result = await run(world, "-o", "json", "--problem")
    rows = {row["name"]: row for row in json.loads(result.stdout)["rows"]}
    assert list(rows) == ["jobs", "api", "new"]
    assert rows["api"] == {
        "namespace": "default",
        "name": "api",
        "kind": "HorizontalPodAutoscaler",
        "state": "AtMaximum",
        "severity": 2,
        "reason": MAXIMUM_REASON,
        "target": "Deployment/web",
        "replicas": 5,
        "desired": 5,
        "min": 1,
        "max": 10,
        "metrics": [{"name": "cpu", "type": "Resource", "text": "cpu: 63%/50%"}],
        "lastScaleAt": None,
        "since": 1767225600000,
        "decidedBy": OTHER,
    }


async def test_wrong_use(world: ApiServerWorld) -> None:
    """Exit status 2 and one sentence."""
    result = await run(world, "-A", "-n", "shop")
    assert (result.exit_code, result.stderr) == (2, "podscaler: --namespace and --all-namespaces exclude each other\n")


async def test_a_server_that_is_gone(world: ApiServerWorld) -> None:
    """Exit status 2, with the server."""
    await world.stop_server()
    result = await run(world)
    assert result.exit_code == 2
    assert result.stderr.startswith("podscaler: cannot reach the API server https://127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "advice"), [(["-A"], "; name a namespace with -n"), (["-n", "shop"], "")], ids=["all", "one"]
)
async def test_autoscalers_that_may_not_be_listed(
    world: ApiServerWorld, monkeypatch: pytest.MonkeyPatch, arguments: list[str], advice: str
) -> None:
    """One sentence with the server's words."""
    message = 'horizontalpodautoscalers.autoscaling is forbidden: User "eve" cannot list them'
    refused = json_answer(
        {"kind": "Status", "status": "Failure", "message": message, "reason": "Forbidden", "code": 403}, status=403
    )
    transport = ScriptedTransport()
    for scope in ("", "/namespaces/shop"):
        transport.on("GET", f"/apis/autoscaling/v2{scope}/horizontalpodautoscalers", refused)

    async def connect(*_: Any, **__: Any) -> ScriptedTransport:
        return transport

    monkeypatch.setattr(http_transport, "connect", connect)
    result = await run(world, *arguments)
    said = f"podscaler: the API server does not let you list autoscalers: {message}{advice}\n"
    assert (result.exit_code, result.stderr) == (2, said)
