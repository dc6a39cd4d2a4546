"""Sends spans to an OpenTelemetry collector, logs when sending begins to fail or to work, and ends in bounded time.

Used by `podscaler.cli.options.tracing`, which imports it only if traces are sent. Rules:

1. A collector that is down or hangs costs spans, bounded memory for those that wait, and one line of the log.
2. `close` returns within CLOSE_TIMEOUT_S, whatever the collector does: what is not sent by then is lost.

Differs: OpenTelemetry's own exporter logs each attempt, and its shutdown waits for all that is queued (half a
minute and more without a response), which is longer than the grace period of a pod.
"""

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from podscaler.base.version import __version__

log = logging.getLogger(__name__)

POST_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 3.0
_SILENCED_LOGGERS = ("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal")
"""Loggers that would log each failed attempt."""


class SpanSender:
    """Sends finished spans from a thread, in batches; a full queue drops spans.

    Args:
        url: where spans are posted.

    Attributes:
        provider: OpenTelemetry's, by which spans are made.
    """

    def __init__(self, url: str) -> None:
        for name in _SILENCED_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._exporter = LoggingExporter(OTLPSpanExporter(endpoint=url, timeout=POST_TIMEOUT_S), url)
        resource = Resource.create({"service.name": "podscaler", "service.version": __version__})
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.provider.add_span_processor(BatchSpanProcessor(self._exporter))

    async def close(self) -> None:
        """Send the waiting spans; returns within CLOSE_TIMEOUT_S, and logs if not all were sent by then."""
        all_sent = asyncio.Event()
        loop = asyncio.get_running_loop()

        def shut_down() -> None:
            self.provider.shutdown()
            with suppress(RuntimeError):  # the loop is closed already
                loop.call_soon_threadsafe(all_sent.set)

        threading.Thread(target=shut_down, name="the end of traces", daemon=True).start()
        try:
            await asyncio.wait_for(all_sent.wait(), CLOSE_TIMEOUT_S)
        except TimeoutError:
            log.warning("the last traces could not be sent within %g s", CLOSE_TIMEOUT_S)


class LoggingExporter(SpanExporter):
    """Sends by `exporter`, and logs when that begins to fail or to work; `url` is for the log."""

    def __init__(self, exporter: SpanExporter, url: str) -> None:
        self._exporter = exporter
        self._url = url
        self._is_working = True

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """As the exporter."""
        export_result = self._exporter.export(spans)
        is_sent = export_result is SpanExportResult.SUCCESS
        if is_sent and not self._is_working:
            log.info("traces are sent to %s again", self._url)
        if self._is_working and not is_sent:
            log.warning("traces cannot be sent to %s and are dropped until they can", self._url)
        self._is_working = is_sent
        return export_result

    def shutdown(self) -> None:
        """As the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """As the exporter."""
        return self._exporter.force_flush(timeout_millis)
