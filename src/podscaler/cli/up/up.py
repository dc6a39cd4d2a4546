"""`podscaler up`: the flags, and the run of a whole control plane on this machine until a signal ends it.

`podscaler.cli.main` registers the command. `podscaler.cli.up.control_plane` wires the parts; a new flag is an option
here and an attribute of its `UpSettings`, and contradictions to other flags are in `_check_options`.
"""

import asyncio
import logging
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from podscaler.base.clock import NANOSECONDS, SystemClock
from podscaler.base.errors import UsageError
from podscaler.cli.commands import data_dir as data_dirs
from podscaler.cli.options import ending_signals, endpoints, log_output, recording
from podscaler.cli.options import settings as controller_settings
from podscaler.cli.options.flags import DURATION
from podscaler.cli.up.control_plane import ControlPlane, UpSettings
from podscaler.cli.up.garbage_collection import OldGenerationCollector
from podscaler.controller.telemetry import current_sync
from podscaler.controlplane.kubelet.launching import image_map

METRIC_RESOLUTION_FLAG = "metric-resolution"


@click.command(epilog="Example: podscaler up --horizontal-pod-autoscaler-sync-period=2s --metric-resolution=2s")
@click.option("--data-dir", type=click.Path(path_type=Path), default=None, help="where everything is kept")
@click.option(
    "--new-cluster", is_flag=True, help="begin with an empty cluster where the data dir has lost the database of one"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="of the API server; 0: that of the last run, or any free one",
)
@click.option(
    "--kubeconfig-out", type=click.Path(path_type=Path), default=None, help="the kubeconfig [default: in the data dir]"
)
@click.option(
    f"--{METRIC_RESOLUTION_FLAG}",
    type=DURATION,
    default="15s",
    show_default=True,
    help="how often CPU and memory are read",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="NAME=PATH",
    help="the program, OCI bundle or root file system that an image name stands for (docs/pods.md); repeatable",
)
@click.option(
    "--pod-network",
    type=click.Choice(["auto", "namespaces", "loopback"]),
    default="auto",
    show_default=True,
    help="a network namespace for each pod, or the machine's loopback; auto: namespaces where the machine allows them",
)
@click.option("--api-only", is_flag=True, help="run the API server alone, in which metrics are objects like others")
@click.option("--without-autoscaler", is_flag=True, help="leave autoscaling to another controller")
@click.option(
    "--without-workload-controllers",
    is_flag=True,
    help="leave workloads, garbage collection and namespaces' ends to another controller manager",
)
@click.option("--without-metrics-api", is_flag=True, help="do not serve metrics.k8s.io")
@click.option(
    "--token-auth-file",
    type=click.Path(path_type=Path),
    default=None,
    help='further users, one a line: token,name,uid,"group,group"',
)
@click.option(
    "--audit-log", type=click.Path(path_type=Path), default=None, help="write who did what to this file; -: to stdout"
)
@click.option("--anonymous-health", is_flag=True, help="let everyone ask for /healthz, /livez and /readyz")
@click.option("--serve-removed-apis", is_flag=True, help="serve every version that HorizontalPodAutoscaler ever had")
@click.option("--serve-heapster", is_flag=True, help="serve Heapster's API on the node's address (docs/heapster.md)")
@click.option(
    "--dashboard-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="of the dashboard (docs/dashboard.md), on this machine alone; 0: any free one",
)
@click.option("--without-dashboard", is_flag=True, help="do not serve the dashboard, and keep no decisions in memory")
@click.option("--strict-upstream", is_flag=True, help="serve and accept nothing that Kubernetes v1.37 would not")
@log_output.log_options
@recording.record_options
@endpoints.address_option
@controller_settings.controller_options
def command(
    *,
    data_dir: Path | None,
    port: int,
    kubeconfig_out: Path | None,
    without_autoscaler: bool,
    verbose: int,
    **options: Any,
) -> None:
    """Run a whole control plane on this machine, with real processes as pods.

    Prints its address once it answers, and ends on SIGINT, SIGTERM or SIGHUP; the next start on the same data directory
    continues with the same objects.
    """
    log_output.configure(options["log_format"], verbose, base_level=logging.WARNING, get_fields=current_sync.log_fields)
    autoscaler = controller_settings.parse_settings(options)
    without_autoscaler = without_autoscaler or options["api_only"]
    _check_options(options, without_autoscaler=without_autoscaler)
    folder = data_dirs.absolute_path(data_dir)
    up_settings = UpSettings(
        data_dir=folder,
        port=port,
        kubeconfig=_kubeconfig_file(kubeconfig_out) if kubeconfig_out else folder / "kubeconfig",
        metric_resolution_s=options["metric_resolution"] / NANOSECONDS,
        autoscaler=None if without_autoscaler else autoscaler,
        record=recording.record_file(options, autoscaler),
        autoscaler_serving=endpoints.parse_address_option(options["metrics_bind_address"]),
        serve_removed_apis=options["serve_removed_apis"],
        serve_heapster=options["serve_heapster"],
        api_only=options["api_only"],
        runs_workload_controllers=not options["without_workload_controllers"],
        serves_metrics_api=not options["without_metrics_api"],
        anonymous_health=options["anonymous_health"],
        audit_log=options["audit_log"],
        token_file=options["token_auth_file"],
        pod_network=options["pod_network"],
        images=image_map.read_entries([image_map.parse_flag(image) for image in options["images"]]),
        is_new_cluster=options["new_cluster"],
        dashboard_port=None if options["without_dashboard"] else options["dashboard_port"],
    )
    run_in_loop = _loop_runner()
    run_in_loop(_run(up_settings))


def _kubeconfig_file(path: Path) -> Path:
    """The absolute path of the kubeconfig. Raises UsageError if its folder does not exist."""
    file = path.expanduser().absolute()
    if not file.parent.is_dir():
        raise UsageError(f"--kubeconfig-out: the folder {file.parent} does not exist")
    return file


def _check_options(options: Mapping[str, Any], *, without_autoscaler: bool) -> None:
    """Raise UsageError for a resolution that is too short and for contradicting flags (values by click's names)."""
    if options["metric_resolution"] < NANOSECONDS // 10:
        raise UsageError(f"--{METRIC_RESOLUTION_FLAG} must be at least 100ms")
    for name in ("record", "metrics_bind_address"):
        if without_autoscaler and options[name]:
            raise UsageError(f"--{name.replace('_', '-')} needs the autoscaler, which is left out")
    if options["serve_removed_apis"] and options["strict_upstream"]:
        raise UsageError("--serve-removed-apis serves what upstream does not, which --strict-upstream forbids")
    if options["serve_heapster"] and options["api_only"]:
        raise UsageError("--serve-heapster needs the node, which --api-only leaves out")


def _loop_runner() -> Any:
    """uvloop's `run` where it is installed, asyncio's elsewhere."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


async def _run(up_settings: UpSettings) -> None:
    """Start the control plane, print its address, and stop it on a signal. Raises UsageError."""
    signal_received = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in ending_signals.handled():
        loop.add_signal_handler(signal_number, signal_received.set)
    clock = SystemClock()
    control_plane = ControlPlane(up_settings, clock)
    await control_plane.start()
    collector_task = asyncio.create_task(OldGenerationCollector(clock).run(), name="garbage")
    try:
        click.echo(
            f"podscaler is up at {control_plane.url}\nexport KUBECONFIG={shlex.quote(str(up_settings.kubeconfig))}"
        )
        if control_plane.dashboard is not None:
            _echo_dashboard(*await control_plane.dashboard.start(up_settings.kubeconfig, _echo_link))
        await signal_received.wait()
    finally:
        collector_task.cancel()
        await control_plane.stop()


def _echo_dashboard(url: str, link: str) -> None:
    click.echo(f"the dashboard is at {url}")
    _echo_link(link)


def _echo_link(link: str) -> None:
    with suppress(OSError):  # nobody reads standard output any more
        click.echo(f"this link logs in once: {link}")
