"""Reads a metric's number from the response to a GET request, by a JSONPath query or as the whole body.

`podscaler.sources.source_types` finds HttpSource by `spec.http` of a MetricSource. A new setting: a field of
HttpSettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

The age of a response is not known: an old value is not detected. Requests have Cache-Control: no-cache, so that
caches ask the server.
"""

import msgspec

from podscaler.sources.protocol import Number, SourceConfig, SystemSettings, parse_settings
from podscaler.sources.systems import json_path
from podscaler.sources.systems.http_client import WebClient


class HttpSettings(SystemSettings, frozen=True):
    """The section `spec.http`.

    Attributes:
        json_path: selects the number in JSON; empty if the whole body is a number.
    """

    url: str
    json_path: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class HttpSource:
    """The ExternalSource of `spec.http`. Raises InvalidSource for invalid settings."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = parse_settings(config, HttpSettings)
        self._path = json_path.compile_path(self._settings.json_path) if self._settings.json_path else None
        self._web = WebClient(config, self._settings.url, self._settings.headers)

    @property
    def query(self) -> str:
        """Such as `http $.queue.length of http://queue/stats`."""
        return f"http {self._settings.json_path or 'body'} of {self._web.shown_url}"

    async def read(self) -> Number:
        """The number in the response. Raises InvalidValue, and as `WebClient.get`."""
        body = await self._web.get()
        if self._path is None:  # quick enough for the event loop
            return json_path.number_in(body, None)
        return await json_path.run_in_thread(json_path.number_in, body, self._path)

    async def close(self) -> None:
        """Close all connections."""
        await self._web.close()
