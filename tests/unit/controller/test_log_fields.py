"""What the log of the controller says in fields, for programs that read it."""

import json
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from podscaler.cli.options.log_output import JSONFormatter
from podscaler.controller.telemetry import current_sync
from podscaler.kube.transport.transport import Response
from podscaler.testing.autoscaling import AutoscalerWorld
from podscaler.testing.cluster import APPS, refusal


class Lines(logging.Handler):
    """Keeps records as they would be written."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(JSONFormatter(current_sync.log_fields))
        self.found: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.found.append(json.loads(self.format(record)))

    def having(self, text: str) -> dict[str, Any]:
        """The only record with this text, without what differs from run to run."""
        (found,) = (line for line in self.found if text in line["msg"])
        return {name: value for name, value in found.items() if name not in {"ts", "msg"}}


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    """What is logged during the test."""
    caplog.set_level(logging.INFO)
    made = Lines()
    logging.getLogger().addHandler(made)
    yield made
    logging.getLogger().removeHandler(made)


@pytest.fixture
async def world() -> AsyncIterator[AutoscalerWorld]:
    """One autoscaler whose pod uses more than it should, not started."""
    made = AutoscalerWorld()
    made.add_web(cpu="900m")
    yield made
    await made.close()


SYNC = {"kind": "HorizontalPodAutoscaler", "namespace": "shop", "autoscaler": "web"}


async def test_a_rescale_has_its_numbers(world: AutoscalerWorld, lines: Lines) -> None:
    """From how many to how many, why, and of which autoscaler."""
    await world.start()
    assert lines.having("rescaled") == SYNC | {
        "level": "info",
        "logger": "podscaler.controller.reconcile.sync_reporter",
        "from": 1,
        "to": 2,
        "reason": "cpu resource utilization (percentage of request) above target",
    }


async def test_whatever_a_sync_causes_names_its_autoscaler(world: AutoscalerWorld, lines: Lines) -> None:
    """Also what is logged far below it, by the client that repeats a request."""
    path = f"{APPS}shop/deployments/web/scale"
    world.cluster.interfere("GET", path, Response(429, {"retry-after": "1"}, b"later"))
    await world.start()
    await world.advance(2)
    assert lines.having("again in 1 s") == SYNC | {"level": "info", "logger": "podscaler.kube.client.client"}


async def test_an_error_is_a_field(world: AutoscalerWorld, lines: Lines) -> None:
    """As it is in the status."""
    world.cluster.interfere("GET", f"{APPS}shop/deployments/web/scale", refusal(403, "Forbidden", "not you"))
    await world.start()
    found = lines.having("not you")
    assert (found["level"], "not you" in found["error"]) == ("warning", True)
