"""`podscaler controller`: the autoscaler against a cluster, in place of the built-in one.

Waits for the API server, logs missing permissions, then runs until SIGINT or SIGTERM. A bug that ends leader election
or the controller is logged with its traceback, and the exit status is 1.
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
from podscaler.cli.options import election, endpoints, heapster, log_output, recording, tracing
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

YOUNG_OBJECTS = 20_000
"""After how many allocations `gc` collects the youngest generation: as many as the syncs of one busy tick make."""
COLLECTIONS_PER_OLDER = (20, 50)
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
@election.election_options
@coexistence_options
def command(*, log_format: str, verbose: int, **options: Any) -> None:
    """The autoscaler against a cluster, in place of the built-in one."""
    settings = _with_coexistence(flags.parse_settings(options), options)
    elected = election.parse_election(options)
    settings = replace(settings, field_manager=election.field_manager(elected))
    serving = endpoints.parse_serving(options)
    names = ("kubeconfig", "context", "kube_api_qps", "kube_api_burst")
    connection = parse_connection(**{name: options[name] for name in names})
    endpoint = options["otlp_endpoint"]
    log_output.configure(log_format, verbose, get_fields=tracing.log_fields_getter(endpoint))
    file = recording.record_file(options, settings)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            runner.run(run(connection, settings, serving, file, otlp_endpoint=endpoint, elected=elected))
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
    elected: Election | None = None,
) -> None:
    """Run until a signal; under leases if `elected` is given and this is not a dry run.

    Args:
        serving: where /metrics, /healthz and /readyz are served; None: nowhere.
        file: the file to which syncs are recorded; None if nothing is recorded.
        otlp_endpoint: the URL of the collector of traces; empty: no traces.

    Raises UsageError if the connection can never work, and if the address to listen on or the file to record to
    cannot be used.
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
        if (traces := await stack.enter_async_context(tracing.open_traces(otlp_endpoint))) is not None:
            traces.attach(client, controller)
        work: ControllerRunner = UnelectedController(controller, client)
        if elected is not None and not settings.dry_run:
            leases = await connection.open_client(clock, user_agent=f"{user_agent}/leader-election")
            stack.push_async_callback(leases.close)
            work = ElectedController(controller, client, lease_client=leases, election=elected, clock=clock)
        is_delegated = serving is not None and serving.is_delegated
        access = DelegatedAccess(work.client, clock) if is_delegated else None
        own_endpoints = Endpoints(controller.telemetry, controller.unready, work.fault, access)
        await stack.enter_async_context(endpoints.serve(serving, own_endpoints, clock))
        needed = (*permissions.needed(settings), *(permissions.of_metrics_access() if is_delegated else ()))
        working = asyncio.ensure_future(_run_controller(work, connection.config, needed))
        loop = asyncio.get_running_loop()
        freezing = loop.create_task(_freeze_when_listed(controller))
        stack.callback(freezing.cancel)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, work.stop)
        await working


async def _run_controller(work: ControllerRunner, config: Config, needed: Sequence[Permission]) -> None:
    """Wait for the API server, log missing permissions, and run the controller; a signal ends each step."""
    clock = SystemClock()
    server_ready = asyncio.ensure_future(api_server_wait.wait_for_server(work.client, config, clock))
    stopped = asyncio.ensure_future(work.stopped())
    try:
        await asyncio.wait((server_ready, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not server_ready.done():
            return
        server_ready.result()
    finally:
        server_ready.cancel()
        stopped.cancel()
        await asyncio.gather(server_ready, stopped, return_exceptions=True)
    all_permissions = (*needed, *work.permissions)
    warning = asyncio.ensure_future(permissions.warn(work.client, all_permissions))
    try:
        await work.run()
    finally:
        warning.cancel()
        await asyncio.gather(warning, return_exceptions=True)


async def _freeze_when_listed(controller: Controller) -> None:
    """Once everything is listed, exempt what is there from garbage collection.

    Autoscalers, pods and scales live as long as the process or are replaced one by one, and hold no cycles; each full
    collection would traverse all of them.
    """
    await controller.wait_listed()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *COLLECTIONS_PER_OLDER)
