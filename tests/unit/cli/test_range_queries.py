"""A span of Prometheus is read in as many range queries as its limit of points needs."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl

import pytest

from podscaler.base.errors import UsageError
from podscaler.cli.simulate import range_queries
from podscaler.simulation.files.loads import RangeRequest

START_S = 1_767_225_600.0


def request_of(points: int, url: str = "http://prometheus") -> RangeRequest:
    return RangeRequest(url=url, query="sum(rate)", start_s=START_S, end_s=START_S + (points - 1) * 30, step_s=30)


@pytest.mark.parametrize(
    ("points", "spans"),
    [
        (1, [(0, 0)]),
        (11_000, [(0, 10_999)]),
        (11_001, [(0, 10_999), (11_000, 11_000)]),
        (25_000, [(0, 10_999), (11_000, 21_999), (22_000, 24_999)]),
    ],
)
def test_no_query_has_more_points_than_prometheus_allows(points: int, spans: list[tuple[int, int]]) -> None:
    expected = [(START_S + first * 30, START_S + last * 30) for first, last in spans]
    assert range_queries.spans(request_of(points)) == expected


@contextmanager
def prometheus(*series: int) -> Iterator[str]:
    """The URL of a server that responds to range queries with these series, whose points are all this value."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            start_s, end_s, step_s = (float(asked[name]) for name in ("start", "end", "step"))
            points = [start_s + index * step_s for index in range(round((end_s - start_s) / step_s) + 1)]
            result = [{"metric": {"n": str(n)}, "values": [[at, str(n)] for at in points]} for n in series]
            body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_points_of_all_queries_come_in_order() -> None:
    with prometheus(7) as url:
        found = range_queries.read(request_of(25_000, url))
    assert found == [(START_S + index * 30, "7") for index in range(25_000)]


@pytest.mark.parametrize(
    ("series", "sentence"),
    [
        (
            (),
            "the query sum(rate) has no series between 2026-01-01T00:00:00+00:00 and 2026-01-01T00:00:30+00:00",
        ),
        ((1, 2), "the query sum(rate) has 2 series; aggregate them to one, as with sum()"),
    ],
)
def test_a_result_that_is_not_one_series_is_a_sentence(series: tuple[int, ...], sentence: str) -> None:
    with prometheus(*series) as url, pytest.raises(UsageError) as error:
        range_queries.read(request_of(2, url))
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("prometheus:9090", "`url` is not a URL such as https://prometheus.monitoring.svc:9090"),
        ("http://127.0.0.1:1", "the query sum(rate) failed: down: http://127.0.0.1:1: "),
    ],
)
def test_a_server_that_cannot_be_asked_is_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        range_queries.read(request_of(2, url))
    assert str(error.value).startswith(sentence)
