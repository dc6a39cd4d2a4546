"""Reads the result of an instant query from Prometheus, or from another server with its API (Thanos, Mimir).

`podscaler.sources.source_types` finds PrometheusSource by `spec.prometheus` of a MetricSource. A new setting: a field
of PrometheusQuerySettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

Source: the documentation of Prometheus (HTTP API, instant queries). A stale series is not in a result: Prometheus
leaves out series without a sample in its lookback period (5 minutes).
"""

from typing import Any

import msgspec

from podscaler.base.errors import JSON_DECODE_ERRORS
from podscaler.sources import metric_numbers
from podscaler.sources.protocol import InvalidValue, Number, SourceConfig, SourceError, SystemSettings, parse_settings
from podscaler.sources.systems.http_client import WebClient


class PrometheusQuerySettings(SystemSettings, frozen=True):
    """The section `spec.prometheus`.

    Attributes:
        url: the URL below which `/api/v1/query` is.
        empty_value: the value of an empty result; None if an empty result is a failure.
    """

    url: str
    query: str
    empty_value: float | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class _Data(msgspec.Struct, rename="camel"):
    """The `data` of a query; `result` depends on the type (`vector`, `scalar`)."""

    result_type: str = ""
    result: Any = None


class _Response(msgspec.Struct, rename="camel"):
    """A response of Prometheus' HTTP API."""

    status: str = ""
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


class PrometheusSource:
    """The ExternalSource of `spec.prometheus`. Raises InvalidSource for invalid settings."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = parse_settings(config, PrometheusQuerySettings)
        self._web = WebClient(config, self._settings.url, self._settings.headers)
        self._url = self._web.url / "api" / "v1" / "query"
        self._form = {"query": self._settings.query, "timeout": f"{config.timeout_s:g}s"}

    @property
    def query(self) -> str:
        """Such as `prometheus query sum(up) at http://prometheus:9090`."""
        return f"prometheus query {self._settings.query} at {self._web.shown_url.rstrip('/')}"

    async def read(self) -> Number:
        """The value of the scalar, or of the vector's one sample.

        Raises InvalidValue, SourceError for a failed query, and as `WebClient.post_form`.
        """
        status, body = await self._web.post_form(self._url, self._form)
        try:
            response = msgspec.json.decode(body, type=_Response)
        except JSON_DECODE_ERRORS:
            raise SourceError(f"the response (status {status}) is not that of Prometheus' API") from None
        if response.status != "success" or response.data is None:
            raise SourceError(f"the query failed (status {status}): {response.error_type}: {response.error}")
        return self._number_in(response.data)

    async def close(self) -> None:
        """Close all connections."""
        await self._web.close()

    def _number_in(self, response_data: _Data) -> Number:
        """The number in a result of the API. Raises InvalidValue."""
        match response_data.result_type, response_data.result:
            case "scalar", [_, sample]:
                return metric_numbers.number_of(sample)
            case "vector", [{"value": [_, sample]}]:
                return metric_numbers.number_of(sample)
            case "vector", []:
                if self._settings.empty_value is None:
                    raise InvalidValue("the result is empty")
                return self._settings.empty_value
            case "vector", [*series]:
                raise InvalidValue(f"the result has {len(series)} series, not one: aggregate them, as with sum()")
        raise InvalidValue(
            f"the result is a {response_data.result_type or 'value of no type'}, not a scalar or a vector"
        )
