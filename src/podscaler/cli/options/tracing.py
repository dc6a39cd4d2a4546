"""Defines the flag `--otlp-endpoint`, by which traces of syncs are sent to an OpenTelemetry collector.

`podscaler.cli.commands.controller` has the flag. Without it nothing of OpenTelemetry is imported, and syncs are not
wrapped; the packages come with the extra `tracing`. The exporter's thread sends spans, and drops them where it cannot
keep up: traces never delay syncs. Further settings (headers, sampling, attributes) are OpenTelemetry's own environment
variables, `OTEL_...`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from podscaler.base.errors import UsageError
from podscaler.base.version import __version__
from podscaler.controller.controller import Controller
from podscaler.controller.telemetry import current_sync
from podscaler.kube.client.client import Client

if TYPE_CHECKING:  # the packages are needed only for traces
    from opentelemetry.sdk.trace import TracerProvider

    from podscaler.cli.options.span_sending import SpanSender

FLAG = "--otlp-endpoint"
TRACES_PATH = "/v1/traces"


tracing_option = click.option(
    FLAG,
    metavar="URL",
    default="",
    help="send traces of syncs there (OpenTelemetry over HTTP, as http://localhost:4318); default: nowhere",
)


class Traces:
    """Wraps a controller and its client, so that syncs and requests become spans.

    Args:
        provider: OpenTelemetry's, which exports the spans.
    """

    def __init__(self, provider: "TracerProvider") -> None:
        self.tracer = provider.get_tracer("podscaler", __version__)

    def attach(self, client: Client, controller: Controller) -> None:
        """Trace the syncs of a controller that has not begun, and the requests of its client."""
        from podscaler.controller.telemetry.traced_syncs import TracedSyncs
        from podscaler.kube.transport.traced_transport import TracedTransport

        client.wrap_transport(lambda transport: TracedTransport(transport, self.tracer))
        controller.wrap(lambda reconciler: TracedSyncs(reconciler, self.tracer))


@asynccontextmanager
async def open_traces(endpoint: str) -> AsyncIterator[Traces | None]:
    """Traces, sent until the end; None for an empty endpoint. Raises UsageError for no URL, or missing packages."""
    if not endpoint:
        yield None
        return
    sender = await asyncio.to_thread(_open_sender, traces_url(endpoint))
    try:
        yield Traces(sender.provider)
    finally:
        await sender.close()


def traces_url(endpoint: str) -> str:
    """The URL to post spans to: the endpoint, with `/v1/traces` appended unless it ends so. Raises UsageError."""
    try:
        parts = urlsplit(endpoint)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise UsageError(f'{FLAG} "{endpoint}" is not a URL like http://localhost:4318')
    base = endpoint.rstrip("/")
    return base if base.endswith(TRACES_PATH) else base + TRACES_PATH


def log_fields_getter(endpoint: str) -> Callable[[], dict[str, str]]:
    """A function that returns the log fields of the running sync; with an endpoint, those of its trace, too.

    Raises:
        UsageError: the packages are not installed.
    """
    if not endpoint:
        return current_sync.log_fields
    try:
        from opentelemetry import trace
    except ImportError as error:
        raise _not_installed(error) from error

    def fields_with_trace() -> dict[str, str]:
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return current_sync.log_fields()
        ids = {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}
        return current_sync.log_fields() | ids

    return fields_with_trace


def _not_installed(error: ImportError) -> UsageError:
    return UsageError(f"{FLAG} needs OpenTelemetry, of which {error.name} is missing: pip install 'podscaler[tracing]'")


def _open_sender(url: str) -> "SpanSender":
    """The sender of spans; imports OpenTelemetry, which takes a while: call it in a thread. Raises UsageError."""
    try:
        from podscaler.cli.options.span_sending import SpanSender
    except ImportError as error:
        raise _not_installed(error) from error
    return SpanSender(url)
