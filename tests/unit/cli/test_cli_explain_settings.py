"""Whose settings `podscaler explain` decides with: those that a controller published, but for given flags."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from podscaler import __version__
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError
from podscaler.cli.explain import explain_cluster
from podscaler.cli.explain.assumed_controller import AssumedController, NoHistory, SettingsFinder
from podscaler.cli.explain.explain_request import SettingsWithOrigin
from podscaler.cli.main import cli
from podscaler.controller.options import effective_settings
from podscaler.controller.options.settings import ControllerSettings
from podscaler.kube.client.client import Client
from podscaler.testing import VirtualClock
from podscaler.testing.cluster import FakeCluster

PUBLISHED = ControllerSettings(tolerance=0.3, downscale_stabilization_ns=15 * NANOSECONDS)
PLACE = f"podscaler {__version__} (ConfigMap kube-system/podscaler-history)"
TOLERANCE = {"horizontal-pod-autoscaler-tolerance": 0.2}
KUBECONFIG = """
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, SettingsWithOrigin(PUBLISHED.decision, PLACE)),
        (
            TOLERANCE,
            SettingsWithOrigin(
                replace(PUBLISHED.decision, tolerance=0.2), f"the flags of this command; the others from {PLACE}"
            ),
        ),
    ],
    ids=["no flag", "a flag"],
)
async def test_a_flag_replaces_what_was_published_of_it(given: dict[str, float], expected: SettingsWithOrigin) -> None:
    """What the controller published of the other flags counts."""
    client, clock = Client(FakeCluster(), VirtualClock()), VirtualClock()
    await effective_settings.publish(client, PUBLISHED, clock)
    controller = AssumedController(ControllerSettings(tolerance=0.2), NoHistory(), given_flags=given)
    assert await SettingsFinder(client, controller).find(None) == expected


async def test_flags_where_nothing_is_published() -> None:
    """The flags that are not given have their defaults, as for a controller that is started so."""
    settings = ControllerSettings(tolerance=0.2)
    finder = SettingsFinder(
        Client(FakeCluster(), VirtualClock()), AssumedController(settings, NoHistory(), given_flags=TOLERANCE)
    )
    assert await finder.find(None) == SettingsWithOrigin(settings.decision, "the flags of this command")


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ((), {}),
        (("--history-namespace=scaling", "--autoscaler-kinds=hpa"), {}),
        (("--horizontal-pod-autoscaler-tolerance=0.2",), TOLERANCE),
        (("--algorithm=current", "--emulate=1.38"), {"algorithm": "current", "emulate": "1.38"}),
        (("--horizontal-pod-autoscaler-upscale-delay=1m",), {"horizontal-pod-autoscaler-upscale-delay": "1m0s"}),
        (("--feature-gates=HPAScaleToZero=false",), {"feature-gates": "HPAScaleToZero=false"}),
    ],
    ids=["none", "places and kinds", "a number", "a default", "a delay", "gates"],
)
def test_the_flags_that_are_given(
    arguments: tuple[str, ...], given: dict[str, object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those on the command line that change decisions, though their values may be the defaults."""
    found: list[AssumedController] = []

    async def answer(_config: object, _request: object, controller: AssumedController, _clock: object) -> None:
        found.append(controller)
        raise UsageError("seen")

    monkeypatch.setattr(explain_cluster, "explain_one", answer)
    (tmp_path / "config").write_text(KUBECONFIG)
    CliRunner().invoke(cli, ["explain", "web", "--kubeconfig", str(tmp_path / "config"), *arguments])
    assert [controller.given_flags for controller in found] == [given]
