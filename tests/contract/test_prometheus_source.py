"""The source prometheus with a real Prometheus: results of all types, and everything that goes wrong."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from source_servers import Place, config, failure, find_program, own_port, read, running

import prerequisites
from podscaler.sources import metric_numbers
from podscaler.sources.protocol import InvalidSource, InvalidValue, Number
from podscaler.sources.systems.prometheus import PrometheusSource

PROGRAM = find_program("prometheus")
pytestmark = prerequisites.PROMETHEUS.mark(is_there=PROGRAM is not None)
TWO = 'label_replace(vector(1), "a", "1", "", "") or label_replace(vector(2), "a", "2", "", "")'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A Prometheus that scrapes nothing: PromQL has constants."""
    place = own_port(tmp_path_factory.mktemp("prometheus"))
    configuration = place.folder / "prometheus.yml"
    configuration.write_text("scrape_configs: []\n")
    assert PROGRAM is not None
    command = [PROGRAM, f"--config.file={configuration}", f"--web.listen-address={place.address}"]
    command += [f"--storage.tsdb.path={place.folder / 'tsdb'}", "--web.route-prefix=/prom"]
    with running(command, place, is_up=lambda: is_ready(place)):
        yield place


def is_ready(server: Place) -> bool:
    """Whether it answers queries: it accepts connections before that."""
    try:
        with urllib.request.urlopen(f"http://{server.address}/prom/-/ready", timeout=1) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def source(server: Place, query: str, **settings: Any) -> PrometheusSource:
    """The source with that query."""
    return PrometheusSource(config({"url": f"http://{server.address}/prom", "query": query} | settings))


@pytest.mark.parametrize(
    ("query", "settings", "number"),
    [
        pytest.param("42", {}, 42, id="a scalar"),
        pytest.param("vector(1.5)", {}, 1.5, id="a vector with one sample"),
        pytest.param("absent(vector(1))", {"emptyValue": 0}, 0, id="an empty result with a value for it"),
        pytest.param("sum(" + TWO + ")", {}, 3, id="an aggregation"),
    ],
)
def test_numbers(server: Place, query: str, settings: dict[str, Any], number: Number) -> None:
    """Several reads use one connection."""
    assert metric_numbers.milli_of(read(source(server, query, **settings), times=3)) == number * 1000


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param("absent(vector(1))", "the result is empty", id="empty"),
        pytest.param("up offset 1d", "the result is empty", id="stale or unknown"),
        pytest.param("vector(NaN)", "the result is NaN", id="NaN"),
        pytest.param("vector(1) / 0", "the result is infinite", id="infinite"),
        pytest.param("vector(-1)", "the result is negative", id="negative"),
        pytest.param("1e300", "the result is greater than 9223372036854775", id="huge"),
        pytest.param(TWO, "the result has 2 series, not one: aggregate them, as with sum()", id="two series"),
        pytest.param("vector(1)[5m:]", "the result is a matrix, not a scalar or a vector", id="a matrix"),
        pytest.param('"text"', "the result is a string, not a scalar or a vector", id="a text"),
    ],
)
def test_bad_values(server: Place, query: str, text: str) -> None:
    """Each is a failure with its reason."""
    with pytest.raises(InvalidValue) as caught:
        metric_numbers.milli_of(read(source(server, query)))
    assert str(caught.value) == text


def test_an_invalid_query(server: Place) -> None:
    """The server's error."""
    error = str(failure(source(server, "sum(")))
    assert error.startswith('the query failed (status 400): bad_data: invalid parameter "query": ')


def test_another_path(server: Place) -> None:
    """What is no API of Prometheus."""
    made = PrometheusSource(config({"url": f"http://{server.address}/other", "query": "1"}))
    assert str(failure(made)) == "the response (status 404) is not that of Prometheus' API"


def test_a_server_that_is_down(tmp_path: Path) -> None:
    """Nothing listens there."""
    assert "connect" in str(failure(source(own_port(tmp_path), "1"))).lower()


def test_the_query(server: Place) -> None:
    """What is asked, of which server; the query of a URL may have a key, and is not shown."""
    made = PrometheusSource(config({"url": "http://prometheus:9090/?key=sesame", "query": "sum(up)"}))
    assert made.query == "prometheus query sum(up) at http://prometheus:9090"


@pytest.mark.parametrize("url", ["http://169.254.169.254", "ftp://a", "http://user:pw@a", "http://a:b", "http://"])
def test_invalid_urls(url: str) -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource):
        PrometheusSource(config({"url": url, "query": "1"}))
