"""The client of Prometheus: requests, responses that cannot be used, and secrets that are shown nowhere."""

import logging
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from podscaler.adapter.prometheus import connection
from podscaler.adapter.prometheus.client import PrometheusClient
from podscaler.adapter.prometheus.connection import PrometheusSettings
from podscaler.adapter.prometheus.responses import PrometheusError, PromSample, PromSeries, QueryResult
from podscaler.base.errors import UsageError
from podscaler.kube.transport.transport import Request, Response
from podscaler.testing.clock import VirtualClock
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

QUERY, RANGE, SERIES = "/api/v1/query", "/api/v1/query_range", "/api/v1/series"


def client(
    path: str, reply: Response | TransportFailure, *, method: str = "GET"
) -> tuple[PrometheusClient, list[Request]]:
    """A client of a server with one response, and the requests that the server gets."""
    transport = ScriptedTransport("http://prometheus:9090")
    transport.on(method, path, reply)
    made = PrometheusClient(transport, VirtualClock(), timeout_s=2.5, uses_post=method == "POST")
    return made, transport.requests


def vector(*values: str) -> Response:
    """A vector of these values."""
    result = [{"metric": {"n": str(n)}, "value": [1.5, value]} for n, value in enumerate(values)]
    return json_answer({"status": "success", "data": {"resultType": "vector", "result": result}})


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_query(method: str) -> None:
    """Expression, instant and time limit are parameters of the URL or of the body."""
    prometheus, requests = client(QUERY, vector("1", "NaN", "+Inf"), method=method)
    result = await prometheus.query('up{a="b"}')
    request = requests[0]
    assert isinstance(result, QueryResult)
    assert [repr(each.value) for each in result.samples] == ["1.0", "nan", "inf"]
    assert result.samples[0] == PromSample({"n": "0"}, 1.0, 1.5)
    sent = request.query if method == "GET" else (request.body or b"").decode()
    assert dict(parse_qsl(sent)) == {"query": 'up{a="b"}', "time": "1767225600.000", "timeout": "2500ms"}


async def test_a_range_query() -> None:
    """Values stay texts, so that NaN is one; the span and the step are parameters."""
    series = {"metric": {"n": "0"}, "values": [[1.5, "1"], [16.5, "NaN"]]}
    reply = json_answer({"status": "success", "data": {"resultType": "matrix", "result": [series]}})
    prometheus, requests = client(RANGE, reply)
    found = await prometheus.query_range("up", start_s=1.5, end_s=16.5, step_s=15.0)
    assert found == [PromSeries({"n": "0"}, [(1.5, "1"), (16.5, "NaN")])]
    sent = dict(parse_qsl(requests[0].query))
    assert sent == {"query": "up", "start": "1.500", "end": "16.500", "step": "15", "timeout": "2500ms"}


async def test_the_result_of_a_range_query_is_a_matrix() -> None:
    """Another type of result is an error, not an empty result."""
    prometheus, _ = client(RANGE, vector("1"))
    with pytest.raises(PrometheusError, match="the result of a range query is a vector, not a matrix"):
        await prometheus.query_range("up", start_s=0.0, end_s=1.0, step_s=1.0)


async def test_series() -> None:
    """A list of series asks for those with a sample in the last seconds."""
    prometheus, requests = client(SERIES, json_answer({"status": "success", "data": [{"__name__": "up"}]}))
    assert await prometheus.series("up", max_age_s=60.0) == [{"__name__": "up"}]
    assert dict(parse_qsl(requests[0].query)) == {"match[]": "up", "start": "1767225540.000"}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (TransportFailure("dial tcp: connect: connection refused"), "down"),
        (TransportFailure("context deadline exceeded"), "down"),
        (Response(502, {}, b"<html>"), "bad_response"),
        (Response(200, {}, b"<html>"), "bad_response"),
        (Response(200, {}, b""), "bad_response"),
        (Response(200, {}, b"\xff"), "bad_response"),
        (json_answer([1]), "bad_response"),
        (json_answer({"status": "success", "data": {"resultType": "vector", "result": 1}}), "bad_response"),
        (
            json_answer({"status": "success", "data": {"resultType": "vector", "result": [{"metric": 1}]}}),
            "bad_response",
        ),
        (vector("ten"), "bad_response"),
        (json_answer({"status": "success"}), "bad_response"),
        (json_answer({"status": "error", "errorType": "bad_data", "error": "parse error"}, 400), "bad_data"),
        (json_answer({"status": "error", "errorType": "execution", "error": "many-to-many"}, 422), "execution"),
        (json_answer({"status": "error", "errorType": "timeout", "error": "query timed out"}, 503), "timeout"),
    ],
    ids=[
        "refused",
        "slow",
        "gateway",
        "html",
        "empty",
        "bytes",
        "list",
        "number",
        "metric",
        "word",
        "nothing",
        "rejected",
        "failed",
        "late",
    ],
)
async def test_what_cannot_be_used(reply: Response | TransportFailure, kind: str) -> None:
    """Each failure is a PrometheusError with its kind."""
    prometheus, _ = client(QUERY, reply)
    with pytest.raises(PrometheusError) as error:
        await prometheus.query("up")
    assert error.value.kind == kind


async def test_other_results() -> None:
    """A scalar is one sample; a matrix has a kind alone."""
    scalar, _ = client(QUERY, json_answer({"status": "success", "data": {"resultType": "scalar", "result": [2, "5"]}}))
    matrix, _ = client(QUERY, json_answer({"status": "success", "data": {"resultType": "matrix", "result": []}}))
    assert await scalar.query("1") == QueryResult("scalar", [PromSample({}, 5.0, 2.0)])
    assert await matrix.query("up[1m]") == QueryResult("matrix", [])


async def test_credentials(tmp_path: Path) -> None:
    """A password in the URL is sent as basic authentication, a token file as a bearer token; headers are kept."""
    clock = VirtualClock()
    url = "https://us%20er:pass%2Fword@prometheus:9090/prefix/"
    config = connection.to_config(PrometheusSettings(url, headers=(("X-Scope", "a"),)), clock)
    assert (config.server, config.headers) == ("https://prometheus:9090/prefix", (("X-Scope", "a"),))
    assert await config.credentials.authorization() == "Basic dXMgZXI6cGFzcy93b3Jk"
    token = tmp_path / "token"
    token.write_text("secret\n")
    config = connection.to_config(PrometheusSettings("http://p", token_file=token), clock)
    assert await config.credentials.authorization() == "Bearer secret"


def test_secrets_are_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Neither a `repr` nor an error has the password or a header."""
    caplog.set_level(logging.DEBUG)
    settings = PrometheusSettings("https://u:hidden@p:1", headers=(("Authorization", "hidden"),))
    shown = repr(settings) + repr(connection.to_config(settings, VirtualClock()).credentials)
    with pytest.raises(UsageError) as error:
        connection.to_config(PrometheusSettings("https://u:hidden@[p"), VirtualClock())
    assert "hidden" not in shown + str(error.value) + caplog.text


@pytest.mark.parametrize(
    "url", ["", "prometheus:9090", "ftp://p", "http://", "http://p/?a=b", "http://p:x", "http://[p"]
)
def test_wrong_urls(url: str) -> None:
    """A URL that cannot be used is a UsageError."""
    with pytest.raises(UsageError, match=r"--prometheus-url"):
        connection.to_config(PrometheusSettings(url), VirtualClock())


def test_wrong_files(tmp_path: Path) -> None:
    """A file that is absent is named with its flag; certificate and key go together."""
    with pytest.raises(UsageError, match=r"--prometheus-ca-file .*/none: No such file"):
        connection.to_config(PrometheusSettings("http://p", ca_file=tmp_path / "none"), VirtualClock())
    with pytest.raises(UsageError, match="go together"):
        connection.to_config(PrometheusSettings("http://p", key_file=tmp_path / "none"), VirtualClock())
