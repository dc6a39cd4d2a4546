"""`podscaler controller`: the autoscaler against a cluster, in place of the built-in one.

`podscaler.cli.main` registers the command. It waits for the API server, logs missing permissions, then runs until
SIGINT or SIGTERM. A bug that ends leader election or the controller is logged with its traceback, and the exit status
is 1. The flags are groups of `podscaler.cli.options`, to which a new flag belongs; `run` connects the parts.
"""

import asyncio
import gc
import logging
import signal
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import click

from podscaler.base.clock import SystemClock
from podscaler.base.errors import PodscalerError
from podscaler.cli.options import election as election_options
from podscaler.cli.options import endpoints, heapster, log_output, recording, tracing
from podscaler.cli.options import settings as flags
from podscaler.cli.options.cluster_connection import ConnectionOptions, connection_options, parse_connection
from podscaler.cli.options.election import ControllerRunner, ElectedController, UnelectedController
from podscaler.cli.options.endpoints import Serving
from podscaler.cli.options.flags import flag_group
from podscaler.controller import assembly
from podscaler.controller.coexistence import standby
from podscaler.controller.controller import Controller
from podscaler.controller.leaderelection.election import Election
from podscaler.controller.options import installation
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.record_file import RecordFile
from podscaler.controller.server import api_server_wait, permissions
from podscaler.controller.server.permissions import Permission
from podscaler.controller.server.serving import Endpoints
from podscaler.controller.telemetry import request_metrics
from podscaler.kube.serving.delegated_access import DelegatedAccess
from podscaler.kube.transport.config import Config

log = logging.getLogger(__name__)

YOUNGEST_THRESHOLD = 20_000
"""After how many allocations `gc` collects the youngest generation: as many as the syncs of one busy tick make."""
OLDER_THRESHOLDS = (20, 50)
"""After how many collections of the youngest generation `gc` collects the second, and of that one the oldest."""

coexistence_options = flag_group(
    click.option("--dry-run", is_flag=True, help="decide and report, and write nothing at all"),
    click.option(
        "--compare",
        is_flag=True,
        help="hold decisions against the status that another controller writes, and log where they differ; "
        "implies --dry-run",
    ),
    click.option(
        "--other-controller",
        type=click.Choice(standby.POLICIES),
        default=standby.REFUSE,
        show_default=True,
        help="while another controller writes statuses: write nothing until it is silent, warn, or do not look",
    ),
)
"""Flags for a cluster that has another controller of autoscalers."""


@click.command(
    epilog="Example: podscaler controller --kubeconfig ~/.kube/config --horizontal-pod-autoscaler-sync-period=10s"
)
@connection_options
@endpoints.endpoint_options
@tracing.tracing_option
@log_output.log_options
@recording.record_options
@flags.controller_options
@election_options.election_options
@coexistence_options
def command(*, log_format: str, verbose: int, **options: Any) -> None:
    """The autoscaler against a cluster, in place of the built-in one."""
    election = election_options.parse_election(options)
    settings = _with_coexistence(flags.parse_settings(options), options)
    settings = replace(settings, field_manager=election_options.field_manager(election))
    serving = endpoints.parse_serving(options)
    names = ("kubeconfig", "context", "kube_api_qps", "kube_api_burst")
    connection = parse_connection(**{name: options[name] for name in names})
    endpoint = options["otlp_endpoint"]
    log_output.configure(log_format, verbose, get_fields=tracing.log_fields_getter(endpoint))
    file = recording.record_file(options, settings)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            runner.run(run(connection, settings, serving, file, otlp_endpoint=endpoint, election=election))
        except PodscalerError:
            raise
        except Exception as error:
            log.critical("the controller ends because of a bug", exc_info=error)
            raise SystemExit(1) from None


def _with_coexistence(settings: ControllerSettings, options: Mapping[str, Any]) -> ControllerSettings:
    """The settings with the values of `coexistence_options`, which `options` has by click's names."""
    return replace(
        settings,
        dry_run=options["dry_run"] or options["compare"],
        compares=options["compare"],
        other_controller=options["other_controller"],
    )


def loop_factory() -> Any:
    """uvloop's loop where it is installed, None (asyncio's) elsewhere."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def run(
    connection: ConnectionOptions,
    settings: ControllerSettings,
    serving: Serving | None,
    file: RecordFile | None = None,
    *,
    otlp_endpoint: str = "",
    election: Election | None = None,
) -> None:
    """Run until a signal; under leases if there is an election and this is not a dry run.

    Args:
        serving: where /metrics, /healthz and /readyz are served; None: nowhere.
        file: the file to which syncs are recorded; None if nothing is recorded.
        otlp_endpoint: the URL of the collector of traces; empty: no traces.
        election: the name and timing of the leases; None: no leases.

    Raises UsageError if the connection can never work, and if the address to listen on, the file to record to or the
    collector's URL cannot be used; also any exception of the controller, which is a bug.
    """
    clock = SystemClock()
    open_client = connection.open_reader if settings.dry_run else connection.open_client
    user_agent = installation.user_agent(settings.field_manager)
    client = await open_client(clock, user_agent=user_agent)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        recorder = await stack.enter_async_context(recording.open_recording(file, clock))
        metrics = await stack.enter_async_context(heapster.open_metrics(client, settings, clock))
        controller = assembly.new_controller(client, settings, clock, metrics=metrics, recording=recorder)
        request_metrics.install(client, controller.telemetry.registry, clock)
        traces = await stack.enter_async_context(tracing.open_traces(otlp_endpoint))
        if traces is not None:
            traces.attach(client, controller)
        runner: ControllerRunner = UnelectedController(controller, client)
        if election is not None and not settings.dry_run:
            lease_client = await connection.open_client(clock, user_agent=f"{user_agent}/leader-election")
            stack.push_async_callback(lease_client.close)
            runner = ElectedController(controller, client, lease_client=lease_client, election=election, clock=clock)
        is_delegated = serving is not None and serving.is_delegated
        metrics_access = DelegatedAccess(runner.client, clock) if is_delegated else None
        own_endpoints = Endpoints(controller.telemetry, controller.unready, runner.fault, metrics_access)
        await stack.enter_async_context(endpoints.serve(serving, own_endpoints, clock))
        needed = (*permissions.needed(settings), *(permissions.of_metrics_access() if is_delegated else ()))
        controller_task = asyncio.ensure_future(_run_controller(runner, connection.config, needed))
        loop = asyncio.get_running_loop()
        freeze_task = loop.create_task(_freeze_when_listed(controller))
        stack.callback(freeze_task.cancel)
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(signal_number, runner.stop)
        await controller_task


async def _run_controller(runner: ControllerRunner, config: Config, needed: Sequence[Permission]) -> None:
    """Wait for the API server, log missing permissions, and run; a signal ends each step. Raises UsageError."""
    clock = SystemClock()
    wait_task = asyncio.ensure_future(api_server_wait.wait_for_server(runner.client, config, clock))
    stop_task = asyncio.ensure_future(runner.stopped())
    try:
        await asyncio.wait((wait_task, stop_task), return_when=asyncio.FIRST_COMPLETED)
        if not wait_task.done():
            return
        wait_task.result()
    finally:
        wait_task.cancel()
        stop_task.cancel()
        await asyncio.gather(wait_task, stop_task, return_exceptions=True)
    all_permissions = (*needed, *runner.permissions)
    warn_task = asyncio.ensure_future(permissions.warn(runner.client, all_permissions))
    try:
        await runner.run()
    finally:
        warn_task.cancel()
        await asyncio.gather(warn_task, return_exceptions=True)


async def _freeze_when_listed(controller: Controller) -> None:
    """Once everything is listed, exempt what is there from garbage collection.

    Autoscalers, pods and scales live as long as the process or are replaced one by one, and hold no cycles; each full
    collection would traverse all of them.
    """
    await controller.wait_listed()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNGEST_THRESHOLD, *OLDER_THRESHOLDS)
