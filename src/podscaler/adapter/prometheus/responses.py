"""Decodes responses of Prometheus' HTTP API.

Called by `prometheus.client`: `data_of` first, then `query_result`, `range_result` or `series` with its result.

Source: documentation of Prometheus' HTTP API.
Differs: a sample with a native histogram has the value 0, as in prometheus-adapter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from podscaler.base.errors import JSON_DECODE_ERRORS

DOWN, BAD_RESPONSE = "down", "bad_response"
"""Kinds of our own: there was no response, or none that can be used."""
REJECTED = frozenset({"bad_data", "execution"})
"""The types of errors about the expression itself."""


class PrometheusError(Exception):
    """A request to Prometheus failed.

    Args:
        kind: Prometheus' type of the error, DOWN without a response, BAD_RESPONSE for one that cannot be used.
        message: for the log; without secrets.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class PromSample(NamedTuple):
    """A value of one series.

    Attributes:
        labels: of the series, with its name as `__name__` if it has one.
        value: may be NaN or infinite.
        at_s: the instant of the query, in seconds since the epoch; 0 for a native histogram, whose value is 0, too.
    """

    labels: Mapping[str, str]
    value: float
    at_s: float


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of an instant query.

    Attributes:
        kind: "vector", "scalar", "string" or "matrix".
        samples: in Prometheus' order; of a scalar one without labels; of the others none.
    """

    kind: str
    samples: Sequence[PromSample]


class PromSeries(NamedTuple):
    """One series of a range query.

    Attributes:
        labels: as in PromSample.
        points: instants in seconds since the epoch, and values as Prometheus writes them (`NaN` included), in order.
    """

    labels: Mapping[str, str]
    points: Sequence[tuple[float, str]]


class _Envelope(msgspec.Struct, rename="camel"):
    """A response of Prometheus' HTTP API; `data` is not decoded yet, and null after an error."""

    status: str
    data: msgspec.Raw = msgspec.Raw(b"null")
    error_type: str = ""
    error: str = ""


class _Sample(msgspec.Struct, gc=False):
    """An element of an instant vector: the labels, and the instant in seconds with the value as text."""

    metric: dict[str, str]
    value: tuple[float, str] | None = None


class _RangeSeries(msgspec.Struct, gc=False):
    """A series of a range vector: the labels, and its points as in `_Sample`."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []


class _QueryData(msgspec.Struct, rename="camel"):
    """The `data` of a query; `result` depends on the type (`vector`, `matrix`, `scalar`)."""

    result_type: str
    result: msgspec.Raw = msgspec.Raw(b"null")


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_QUERY_DATA = msgspec.json.Decoder(_QueryData)
_VECTOR = msgspec.json.Decoder(list[_Sample])
_SCALAR = msgspec.json.Decoder(tuple[float, str])
_MATRIX = msgspec.json.Decoder(list[_RangeSeries])
_SERIES = msgspec.json.Decoder(list[dict[str, str]])
_JSON_STATUSES = frozenset({400, 422, 503})
"""Besides 2xx, the statuses of responses in JSON."""


def data_of(status: int, body: bytes) -> msgspec.Raw:
    """The data of a response. Raises PrometheusError for a failure (with Prometheus' type) and for other bodies."""
    if status // 100 != 2 and status not in _JSON_STATUSES:
        raise PrometheusError(BAD_RESPONSE, f"unknown response code {status}")
    try:
        envelope = _ENVELOPE.decode(body)
    except JSON_DECODE_ERRORS as error:
        raise PrometheusError(BAD_RESPONSE, f"the response {status} is not Prometheus' JSON: {error}") from error
    if envelope.status != "success":
        raise PrometheusError(envelope.error_type or BAD_RESPONSE, envelope.error or f"the status is {status}")
    return envelope.data


def query_result(response_data: msgspec.Raw) -> QueryResult:
    """The result of an instant query. Raises PrometheusError if it cannot be decoded."""
    try:
        query_data = _QUERY_DATA.decode(response_data)
        if query_data.result_type == "vector":
            return QueryResult("vector", [_sample(wire_sample) for wire_sample in _VECTOR.decode(query_data.result)])
        if query_data.result_type == "scalar":
            at_s, number_text = _SCALAR.decode(query_data.result)
            return QueryResult("scalar", [PromSample({}, float(number_text), at_s)])
    except (*JSON_DECODE_ERRORS, ValueError) as error:
        raise PrometheusError(BAD_RESPONSE, f"a result cannot be decoded: {error}") from error
    return QueryResult(query_data.result_type, [])


def _sample(decoded: _Sample) -> PromSample:
    """A sample of a vector. Raises ValueError if its value is no number."""
    at_s, number_text = decoded.value or (0.0, "0")  # a native histogram has no `value`
    return PromSample(decoded.metric, float(number_text), at_s)


def range_result(response_data: msgspec.Raw) -> Sequence[PromSeries]:
    """The series of a range query. Raises PrometheusError."""
    try:
        query_data = _QUERY_DATA.decode(response_data)
        if query_data.result_type == "matrix":
            return [
                PromSeries(wire_series.metric, wire_series.values) for wire_series in _MATRIX.decode(query_data.result)
            ]
    except JSON_DECODE_ERRORS as error:
        raise PrometheusError(BAD_RESPONSE, f"a result cannot be decoded: {error}") from error
    raise PrometheusError(BAD_RESPONSE, f"the result of a range query is a {query_data.result_type}, not a matrix")


def series(response_data: msgspec.Raw) -> list[dict[str, str]]:
    """The labels of series. Raises PrometheusError."""
    try:
        return _SERIES.decode(response_data)
    except JSON_DECODE_ERRORS as error:
        raise PrometheusError(BAD_RESPONSE, f"the list of series cannot be decoded: {error}") from error
