"""`podscaler adapter`: custom, external and resource metrics from Prometheus, in place of prometheus-adapter.

`podscaler.cli.main` registers the command; `podscaler.cli.options.adapter_options` has the flags. `run` opens the
connections and serves until SIGINT or SIGTERM. /readyz fails until Prometheus and the API server have been read. A new
background task: an item of `background_tasks` in `run`.
"""

import asyncio
import logging
import random
import signal
from contextlib import AsyncExitStack
from typing import Any

import click

from podscaler.adapter import assembly
from podscaler.adapter.assembly import AdapterServers
from podscaler.adapter.config import config_file
from podscaler.adapter.config.rules import AdapterConfig
from podscaler.adapter.prometheus import connection
from podscaler.adapter.prometheus.client import PrometheusClient
from podscaler.adapter.providers.metric_sources import MetricSourceMetrics
from podscaler.adapter.resource.kubelet_metrics import KubeletMetrics
from podscaler.adapter.server.access import ExtensionAccess
from podscaler.base.clock import SystemClock
from podscaler.base.errors import PodscalerError, UsageError
from podscaler.base.version import __version__
from podscaler.cli.commands.controller import loop_factory
from podscaler.cli.options import adapter_options, log_output
from podscaler.cli.options.adapter_options import AdapterOptions
from podscaler.kube.client import connect
from podscaler.kube.client.client import Client
from podscaler.kube.serving.delegated_access import DelegatedAccess
from podscaler.kube.serving.front_proxy import FrontProxyAuthentication
from podscaler.kube.serving.serving_certificate import ServingCertificate, self_signed_context
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.sources.cluster_sources import ClusterSources

log = logging.getLogger(__name__)

USER_AGENT = f"podscaler-adapter/{__version__}"


@click.command(epilog="Example: podscaler adapter --config rules.yaml --prometheus-url http://prometheus:9090")
@adapter_options.options
@log_output.log_options
def command(*, log_format: str, verbose: int, **flag_values: Any) -> None:
    """Custom, external and resource metrics from Prometheus, by the rules of prometheus-adapter."""
    options = adapter_options.parse(flag_values)
    config = config_file.load(options.rules_file) if options.rules_file is not None else AdapterConfig()
    if options.kubelets is not None and config.resource_rules is not None:
        raise UsageError(f"--resource and the resourceRules of {options.rules_file} exclude each other")
    log_output.configure(log_format, verbose)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            runner.run(run(config, options))
        except PodscalerError:
            raise
        except Exception as error:
            log.critical("the adapter ends because of a bug", exc_info=error)
            raise SystemExit(1) from None


async def run(config: AdapterConfig, options: AdapterOptions) -> None:
    """Run until a signal. Raises UsageError for files and addresses that cannot be used."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        lister = await _open_client(options.lister, stack, clock)
        token_client = await _open_client(options.authentication, stack, clock)
        access_client = await _open_client(options.authorization, stack, clock)
        prometheus_config = await asyncio.to_thread(connection.to_config, options.prometheus, clock)
        transport = await http_transport.connect(prometheus_config, user_agent=USER_AGENT)
        stack.push_async_callback(transport.close)
        files = options.certificate_files
        certificate = await asyncio.to_thread(ServingCertificate, *files) if files else None
        context = certificate.context if certificate else await asyncio.to_thread(self_signed_context, ["localhost"])
        front_proxy = FrontProxyAuthentication(token_client, clock, context)
        kubelets = KubeletMetrics(options.kubelets, lister, clock, user_agent=USER_AGENT) if options.kubelets else None
        tokens = DelegatedAccess(token_client, clock)
        servers = AdapterServers(
            database=PrometheusClient(transport, clock, timeout_s=options.timeout_s, uses_post=options.uses_post),
            lister=lister,
            access=ExtensionAccess(front_proxy, tokens, DelegatedAccess(access_client, clock)),
            unready=lambda: _unready_reasons(front_proxy, kubelets),
        )
        storage = kubelets.storage if kubelets is not None else None
        sources = _new_cluster_sources(options, lister, clock)
        external = [MetricSourceMetrics(sources.direct, sources.names)] if sources is not None else []
        adapter = assembly.new_adapter(config, options.settings, servers, clock, external=external, kubelets=storage)
        bound_address = await adapter.server.start(options.host, options.port, context)
        stack.push_async_callback(adapter.server.stop)
        log.info("serving the metrics APIs on %s", bound_address)
        background_tasks = [("the authorities of the API server", front_proxy.run)]
        if certificate is not None:
            background_tasks.append(("the serving certificate", lambda: certificate.follow(clock)))
        if kubelets is not None:
            background_tasks.append(("the scraping of kubelets", kubelets.run))
        if sources is not None:
            background_tasks.append(("the metric sources", sources.run))
        await _wait_until_signal(asyncio.ensure_future(adapter.run(*background_tasks)))


def _new_cluster_sources(options: AdapterOptions, client: Client, clock: SystemClock) -> ClusterSources | None:
    """The MetricSources of the cluster; None if they are not served."""
    if not options.serves_metric_sources:
        return None
    folder, fresh_s = options.metric_source_folder, options.settings.tick_s
    return ClusterSources(client, clock, random.Random(), folder=folder, fresh_s=fresh_s, may_write=lambda: True)


def _unready_reasons(front_proxy: FrontProxyAuthentication, kubelets: KubeletMetrics | None) -> list[str]:
    """Why requests cannot be authenticated or served yet, one reason an item; empty if they can."""
    reasons = [] if front_proxy.is_ready else ["the API server's authorities are not known yet"]
    return [*reasons, *(kubelets.unready() if kubelets is not None else [])]


async def _open_client(config: Config, stack: AsyncExitStack, clock: SystemClock) -> Client:
    """A client of an API server, closed with the stack. Raises UsageError."""
    client = await connect.open_client(config, clock, user_agent=USER_AGENT)
    stack.push_async_callback(client.close)
    return client


async def _wait_until_signal(adapter_task: "asyncio.Future[None]") -> None:
    """Return on SIGINT or SIGTERM, with the task cancelled; raise its error if it ends before."""
    loop, signal_received = asyncio.get_running_loop(), asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signal_number, signal_received.set)
    signal_task = asyncio.ensure_future(signal_received.wait())
    await asyncio.wait((adapter_task, signal_task), return_when=asyncio.FIRST_COMPLETED)
    signal_task.cancel()
    if not adapter_task.done():
        adapter_task.cancel()
        await asyncio.gather(adapter_task, return_exceptions=True)
        return
    adapter_task.result()
