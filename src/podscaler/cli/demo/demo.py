"""`podscaler demo`: shows a workload under real load being scaled up and down, with the reasons.

`podscaler.cli.main` registers the command. It starts `podscaler up` as a separate process on a temporary data
directory, and uses only its API. A scenario (`podscaler.cli.demo.demo_scenario`) has the workload and its load. A new
scenario: add its class to SCENARIOS, and its description to the help of `--scenario`.
"""

import asyncio
import base64
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from podscaler.base.clock import SystemClock
from podscaler.base.errors import UsageError
from podscaler.cli.demo import demo_scenario, demo_story
from podscaler.cli.demo.demo_scenario import DemoControlPlane, DemoScenario
from podscaler.cli.demo.demo_stage import DemoStage
from podscaler.cli.demo.demo_story import Story
from podscaler.cli.demo.queue_scenario import QueueScenario
from podscaler.cli.demo.requests_scenario import RequestsScenario
from podscaler.cli.demo.web_scenario import WebScenario
from podscaler.cli.options import ending_signals
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport

T = TypeVar("T")

START_TIMEOUT_S = 120.0
READY_POLL_PERIOD_S = 0.2
VIEW_PERIOD_S = 0.5
"""How often the load is set and the state read."""
LINE_PERIOD_S = 2.0
"""How often the state is printed."""
SCENARIOS: Mapping[str, Callable[[float], DemoScenario]] = {
    "web": WebScenario,
    "queue": QueueScenario,
    "requests": RequestsScenario,
}


@click.command(epilog="Example: podscaler demo --scenario queue")
@click.option(
    "--scenario",
    "scenario_name",
    type=click.Choice(list(SCENARIOS)),
    default="web",
    show_default=True,
    help="web: CPU of a web service; queue: a list in a real Redis, down to zero and back; requests: requests per "
    "second, counted by a real Prometheus",
)
@click.option("--seconds", type=click.FloatRange(30, 3600), default=100, show_default=True, help="how long it may last")
@click.option("--json", "as_json", is_flag=True, help="print only the summary, as JSON")
def command(*, scenario_name: str, seconds: float, as_json: bool) -> None:
    """Watch a workload being scaled up and down, with the reasons.

    The servers of the scenarios queue and requests are started on a free port of this machine, and ended at the end.
    Exit status 0 only if both a scale-up and a scale-down were seen (queue: also to zero and from zero), else 1.
    """
    scenario = SCENARIOS[scenario_name](seconds)
    scenario.check()
    try:
        story = asyncio.run(_run_until_signal(_play(scenario, seconds, quiet=as_json)))
    except asyncio.CancelledError:
        raise click.Abort from None
    is_success = scenario.is_success(story)
    facts = demo_story.summary(story, scenario.facts())
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        goal = scenario.goal if is_success else ""
        lines = demo_story.summary_lines(facts, fact_line=scenario.fact_line(), goal=goal)
        click.echo("\n" + "\n".join(lines))
    sys.exit(0 if is_success else 1)


async def _run_until_signal(play: Coroutine[Any, Any, T]) -> T:
    """The result of `play`, which signals cancel, so that it can end what it started. Raises CancelledError then."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(play)

    def stop() -> None:
        if not task.cancelling():  # a second Ctrl-C must not interrupt the cleanup
            task.cancel()

    for signal_number in ending_signals.handled():
        loop.add_signal_handler(signal_number, stop)
    return await task


async def _play(scenario: DemoScenario, seconds: float, *, quiet: bool) -> Story:
    """Run the scenario on a new control plane, and remove both; returns what happened."""
    with tempfile.TemporaryDirectory(prefix="podscaler-demo-") as folder:
        data_dir = Path(folder, "data")
        async with _control_plane(data_dir, quiet=quiet) as client:
            stage = DemoStage(client, scenario)
            try:
                await scenario.start(await asyncio.to_thread(_read_control_plane, data_dir))
                await stage.set_up()
                _print(f"created {stage.created_text()} {scenario.name}", quiet=quiet)
                await _wait_until_ready(stage)
                await scenario.begin(await stage.service_url())
                return await _watch(stage, scenario, seconds, quiet=quiet)
            finally:
                await scenario.end()


def _read_control_plane(data_dir: Path) -> DemoControlPlane:
    """The address and the credentials of the control plane, from the kubeconfig that it wrote; blocks."""
    config = yaml.safe_load((data_dir / "kubeconfig").read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authorities = base64.b64decode(cluster["certificate-authority-data"])
    return DemoControlPlane(data_dir.parent, cluster["server"], user["token"], authorities)


@asynccontextmanager
async def _control_plane(data_dir: Path, *, quiet: bool) -> AsyncIterator[Client]:
    """A client of a control plane that runs within the context. Raises UsageError if it does not start."""
    command_line = ["-m", "podscaler", "up", "--data-dir", str(data_dir), *demo_scenario.UP_FLAGS]
    log = data_dir.with_name("up.log")
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command_line, stdout=asyncio.subprocess.PIPE, stderr=stderr
        )
    try:
        assert process.stdout is not None
        first_line = await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_S)
        if not first_line:
            reason = log.read_text(encoding="utf-8", errors="replace").strip()
            raise UsageError(f"the control plane did not start: {reason}")
        _print(first_line.decode().strip(), quiet=quiet)
        config = await asyncio.to_thread(locate.find_config, str(data_dir / "kubeconfig"))
        client = Client(await http_transport.connect(config, user_agent="podscaler-demo"), SystemClock())
        try:
            yield client
        finally:
            await client.close()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _wait_until_ready(stage: DemoStage) -> None:
    """Wait until a pod of the demo is ready. Raises UsageError after START_TIMEOUT_S."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while not await stage.is_ready():
        if time.monotonic() > deadline_s:
            raise UsageError(f"the demo's pod was not ready within {START_TIMEOUT_S:.0f} s")
        await asyncio.sleep(READY_POLL_PERIOD_S)


async def _watch(stage: DemoStage, scenario: DemoScenario, seconds: float, *, quiet: bool) -> Story:
    """Set the load and read the state every VIEW_PERIOD_S, print changes, until the scenario or the time is over."""
    story = Story()
    started_s = time.monotonic()
    next_line_s = 0.0
    last_holding = ""
    while (elapsed_s := time.monotonic() - started_s) < seconds and not scenario.is_over(story):
        await scenario.advance(story, elapsed_s)
        view = await stage.read_view(at_s=elapsed_s)
        story.views.append(view)
        for rescale in await stage.take_rescales(at_s=elapsed_s):
            story.rescales.append(rescale)
            _print(demo_story.rescale_line(rescale), quiet=quiet)
        if view.holding and view.holding != last_holding:
            _print(f"{elapsed_s:4.0f} s   .. {view.holding}", quiet=quiet)
        last_holding = view.holding
        if elapsed_s >= next_line_s:
            _print(demo_story.line(view), quiet=quiet)
            next_line_s = elapsed_s + LINE_PERIOD_S
        await asyncio.sleep(VIEW_PERIOD_S)
    return story


def _print(output_line: str, *, quiet: bool) -> None:
    if not quiet:
        click.echo(output_line)
