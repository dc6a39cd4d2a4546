"""`podscaler dashboard`: the flags, and checks of their values.

`podscaler.cli.main` registers the command; `podscaler.cli.dashboard.dashboard_run` does the work. A new flag is an
option here, and an attribute of DashboardRunSettings.
"""

import asyncio
import ipaddress
import logging
from pathlib import Path
from typing import Any

import click

from podscaler.base.errors import UsageError
from podscaler.cli.dashboard.cluster_watch import WatchOptions, given_flags
from podscaler.cli.dashboard.dashboard_run import DashboardRun, DashboardRunSettings
from podscaler.cli.options import log_output, recording
from podscaler.cli.options import settings as flags
from podscaler.cli.options.cluster_connection import parse_connection
from podscaler.cli.options.flags import NAMESPACE, Option, kubeconfig_options
from podscaler.observe.decision_history import MAX_BYTES

HISTORY_SIZE_OPTION = Option(
    "history-size", recording.SIZE, f"{MAX_BYTES // 2**20}Mi", "memory for the decisions of a day"
)

EXAMPLE = """\b
Examples:
  podscaler dashboard
  podscaler dashboard -n shop
  podscaler dashboard --context production --recording hpa.recording.jsonl.gz
  podscaler dashboard --bind 0.0.0.0 --port 8443 --server-name hpa.example.com \\
    --tls-cert-file tls.crt --tls-private-key-file tls.key
"""


@click.command(epilog=EXAMPLE)
@kubeconfig_options
@click.option(
    "-n",
    "--namespace",
    type=NAMESPACE,
    metavar="NAMESPACE",
    help="read this namespace alone, where you may not read all; default: all",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: any free one")
@click.option(
    "--bind",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="the address to listen on; beyond this machine, TLS is needed, and viewers log in with a token of the cluster",
)
@click.option("--allow-writes", is_flag=True, help="let viewers change specs of autoscalers, as far as they may")
@click.option("--server-name", metavar="NAME", multiple=True, help="a name by which browsers reach this server")
@click.option(
    "--tls-cert-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="serve over HTTPS, with this certificate (read again when it is renewed)",
)
@click.option("--tls-private-key-file", type=click.Path(path_type=Path), metavar="FILE", help="the certificate's key")
@click.option(
    "--recording",
    "recordings",
    metavar="FILE",
    multiple=True,
    help="show the decisions of this recording, too (of `controller --record`)",
)
@click.option(
    "--reports",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="show the reports (JSON) of simulations and backtests in this folder",
)
@HISTORY_SIZE_OPTION.decorator()
@recording.record_options
@log_output.log_options
@flags.decision_options
@click.pass_context
def command(ctx: click.Context, /, *, port: int, bind: str, **options: Any) -> None:
    """Show the autoscalers of a cluster in a browser.

    Reads the cluster with your kubeconfig, and writes nothing unless --allow-writes is given. Decides as the controller
    would, so that each decision can be explained, also where kube-controller-manager decides. Prints a link that logs
    in once. The decisions of the last day are kept in memory; with --record they are there again after a restart.
    """
    log_output.configure(options["log_format"], options["verbose"], base_level=logging.WARNING)
    certificate, key = options["tls_cert_file"], options["tls_private_key_file"]
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together")
    serves_other_machines = not _is_loopback(bind)
    if serves_other_machines and certificate is None:
        raise UsageError(f"--bind {bind} is reachable from other machines: give --tls-cert-file and its key")
    if serves_other_machines and ipaddress.ip_address(bind).is_unspecified and not options["server_name"]:
        raise UsageError(f"--bind {bind} is no address that browsers can open: give theirs with --server-name")
    if (file := recording.record_file(options, flags.parse_settings(options))) is not None:
        file.check()  # raises UsageError before anything is started
    settings = DashboardRunSettings(
        watch=WatchOptions(
            connection=parse_connection(kubeconfig=options["kubeconfig"], context=options["context"]),
            history_bytes=options["history_size"],
            options=options,
            given_flags=given_flags(ctx),
        ),
        namespace=options["namespace"] or "",
        host=bind,
        port=port,
        server_names=options["server_name"],
        certificate_files=None if certificate is None else (certificate, key),
        serves_other_machines=serves_other_machines,
        allows_writes=options["allow_writes"],
        recordings=options["recordings"],
        reports=options["reports"],
    )
    asyncio.run(DashboardRun(settings).run())


def _is_loopback(address: str) -> bool:
    """Whether an address is reachable from this machine only. Raises UsageError for a text that is no address."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        raise UsageError(f'--bind "{address}" is not an IP address') from None
