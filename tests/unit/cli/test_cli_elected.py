"""A controller among others, as the command runs it: what ends it, and with which exit status."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from podscaler.cli.commands import controller
from podscaler.cli.options.election import ElectedController
from podscaler.controller.leaderelection.election import Election
from podscaler.kube.client.client import Client
from podscaler.testing.autoscaling import AutoscalerWorld
from podscaler.testing.leases import LeaseServer

LEASE = "podscaler-controller"
KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
"""


class Led:
    """An elected controller on a cluster in memory, in virtual time."""

    def __init__(self) -> None:
        self.world = AutoscalerWorld()
        self.world.add_web()
        self.leases = LeaseServer()
        client = Client(self.world.cluster, self.world.clock)
        leases = Client(self.leases.line(), self.world.clock)
        elected = Election(identity="a")
        self.controller = self.world.controller
        self.work = ElectedController(
            self.controller, client, lease_client=leases, election=elected, clock=self.world.clock
        )

    async def run(self, span_s: float) -> str:
        """What the run raised within that time."""
        running = asyncio.ensure_future(self.work.run())
        await self.world.advance(span_s)
        assert running.done()
        return repr(running.exception())


async def fail() -> None:
    """A bug."""
    raise KeyError("bug")


async def test_a_bug_in_taking_up_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease is free again, /healthz has the reason, and the run raises."""

    def expect_changes() -> None:
        raise KeyError("bug")

    led = Led()
    monkeypatch.setattr(led.controller.assignment._handover.history, "expect_changes", expect_changes)
    raised = await led.run(30)
    assert (raised, led.leases.holder(LEASE), "KeyError" in led.work.fault()) == ("KeyError('bug')", "", True)


async def test_a_bug_in_the_controller_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that fails as a whole gives its lease back in order before the run raises."""
    led = Led()
    monkeypatch.setattr(led.controller, "wait_listed", fail)
    monkeypatch.setattr(led.controller.assignment, "_wait_listed", led.controller.informers.pods.wait_synced)
    raised = await led.run(30)
    assert (raised, led.leases.holder(LEASE)) == ("KeyError('bug')", "")
    assert led.work.fault() == "the controller failed: KeyError('bug')"


def test_the_exit_status_of_a_bug(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is 1, and the log has the traceback."""

    async def run(*_: object, **__: object) -> None:
        raise KeyError("bug")

    config = tmp_path / "config"
    config.write_text(KUBECONFIG)
    monkeypatch.setattr(controller, "run", run)
    done = CliRunner().invoke(controller.command, ["--kubeconfig", str(config), "--log-format=json"])
    [record] = caplog.records
    assert (done.exit_code, record.levelname, record.exc_info is not None) == (1, "CRITICAL", True)
