"""`podscaler demo`: shows a web service under real load being scaled up and down, with the reasons.

It starts `podscaler up` as a separate process on a temporary data directory, and uses only its API.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from podscaler.base.clock import SystemClock
from podscaler.base.errors import UsageError
from podscaler.cli.demo import demo_scene, demo_story
from podscaler.cli.demo.demo_scene import LoadShape
from podscaler.cli.demo.demo_stage import DemoStage
from podscaler.cli.demo.demo_story import Story
from podscaler.cli.demo.load import LoadGenerator
from podscaler.cli.options import ending_signals
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport import http_transport

T = TypeVar("T")

START_LIMIT_S = 120.0
LINE_EVERY_S = 2.0


@click.command(epilog="Example: podscaler demo --seconds 120")
@click.option("--seconds", type=click.FloatRange(30, 3600), default=100, show_default=True, help="how long it may last")
@click.option("--json", "as_json", is_flag=True, help="print only the summary, as JSON")
def command(*, seconds: float, as_json: bool) -> None:
    """Watch a web service being scaled up and down, with the reasons.

    Exit status 0 only if both a scale-up and a scale-down were seen, else 1.
    """
    try:
        story, generator = asyncio.run(_stoppable(_play(LoadShape(seconds), quiet=as_json)))
    except asyncio.CancelledError:
        raise click.Abort from None
    facts = demo_story.summary(story, generator.outcomes)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    else:
        click.echo("\n" + "\n".join(demo_story.summary_lines(facts)))
    sys.exit(0 if story.scaled_up and story.scaled_down else 1)


async def _stoppable(play: Coroutine[Any, Any, T]) -> T:
    """`play`, cancelled by SIGTERM and by the end of the terminal: what it has started must not outlive it."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(play)

    def stop() -> None:
        if not task.cancelling():  # a second Ctrl-C must not interrupt the cleanup
            task.cancel()

    for number in ending_signals.handled():
        loop.add_signal_handler(number, stop)
    return await task


async def _play(shape: LoadShape, *, quiet: bool) -> tuple[Story, LoadGenerator]:
    with tempfile.TemporaryDirectory(prefix="podscaler-demo-") as folder:
        async with _control_plane(Path(folder, "data"), quiet=quiet) as client:
            stage = DemoStage(client)
            await stage.set_up()
            _print(f"created Deployment, Service and HorizontalPodAutoscaler {demo_scene.NAME}", quiet=quiet)
            generator = LoadGenerator(await _wait_for_url(stage))
            load = asyncio.create_task(generator.run())
            try:
                return await _watch(stage, generator, shape, quiet=quiet), generator
            finally:
                load.cancel()
                await asyncio.gather(load, return_exceptions=True)


@asynccontextmanager
async def _control_plane(data_dir: Path, *, quiet: bool) -> AsyncIterator[Client]:
    command_line = ["-m", "podscaler", "up", "--data-dir", str(data_dir), *demo_scene.UP_FLAGS]
    log = data_dir.with_name("up.log")
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command_line, stdout=asyncio.subprocess.PIPE, stderr=stderr
        )
    try:
        assert process.stdout is not None
        first_line = await asyncio.wait_for(process.stdout.readline(), START_LIMIT_S)
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


async def _wait_for_url(stage: DemoStage) -> str:
    deadline_s = time.monotonic() + START_LIMIT_S
    while not (url := await stage.url()):
        if time.monotonic() > deadline_s:
            raise UsageError(f"the demo's pod was not ready within {START_LIMIT_S:.0f} s")
        await asyncio.sleep(0.2)
    return url


async def _watch(stage: DemoStage, generator: LoadGenerator, shape: LoadShape, *, quiet: bool) -> Story:
    story = Story()
    started_s = time.monotonic()
    next_line_s = 0.0
    holding = ""
    while (elapsed_s := time.monotonic() - started_s) < shape.seconds and not story.is_over():
        generator.rate = shape.rate_at(elapsed_s)
        view = await stage.view(at_s=elapsed_s, rate=generator.rate)
        story.views.append(view)
        for rescale in await stage.new_rescales(at_s=elapsed_s):
            story.rescales.append(rescale)
            _print(demo_story.rescale_line(rescale), quiet=quiet)
        if view.holding and view.holding != holding:
            _print(f"{elapsed_s:4.0f} s   .. {view.holding}", quiet=quiet)
        holding = view.holding
        if elapsed_s >= next_line_s:
            _print(demo_story.line(view), quiet=quiet)
            next_line_s = elapsed_s + LINE_EVERY_S
        await asyncio.sleep(0.5)
    return story


def _print(text: str, *, quiet: bool) -> None:
    if not quiet:
        click.echo(text)
