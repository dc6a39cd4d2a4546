"""What samples a body has, in both formats."""

import pytest

from podscaler.controlplane.metrics.scraped import exposition
from podscaler.controlplane.metrics.scraped.exposition import SAMPLES_MAX, ExpositionError

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4"
NOW_S = 1_000_000.0

BODY = """\
# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total{code="200",path="/a\\"b"} 12
# TYPE queue_depth gauge
queue_depth 7.5
# TYPE latency_seconds histogram
latency_seconds_bucket{le="+Inf"} 3
latency_seconds_sum 1.5
latency_seconds_count 3
# TYPE size summary
size{quantile="0.5"} 4
size_sum 10
size_count 2
untyped 3
jobs_total 9
"""


def read(body: str, content_type: str = TEXT) -> list[tuple[str, dict[str, str], float, bool]]:
    """The samples, shown."""
    found = exposition.parse(body, content_type, NOW_S)
    return [(each.metric, dict(each.labels), each.value, each.is_counter) for each in found]


def test_the_text_format() -> None:
    """Counters and what only rises in histograms and summaries are marked; buckets and quantiles are left out."""
    assert read(BODY) == [
        ("http_requests", {"code": "200", "path": '/a"b'}, 12.0, True),
        ("queue_depth", {}, 7.5, False),
        ("latency_seconds_sum", {}, 1.5, True),
        ("latency_seconds_count", {}, 3.0, True),
        ("size_sum", {}, 10.0, True),
        ("size_count", {}, 2.0, True),
        ("untyped", {}, 3.0, False),
        ("jobs", {}, 9.0, True),
    ]


def test_openmetrics() -> None:
    """The same of OpenMetrics; the time of a counter's creation, and what only informs, are left out."""
    body = (
        "# TYPE http_requests counter\nhttp_requests_total 12\nhttp_requests_created 1000\n"
        '# TYPE build info\nbuild_info{version="1"} 1\n# TYPE depth gauge\ndepth 4 # {} 1\n# EOF\n'
    ).replace(" # {} 1", "")
    assert read(body, OPENMETRICS) == [("http_requests", {}, 12.0, True), ("depth", {}, 4.0, False)]


@pytest.mark.parametrize(
    ("body", "samples"),
    [
        pytest.param("r_total 100\nr_total 1000\n", [("r", {}, 100.0, True)], id="a counter twice"),
        pytest.param('r{a="1"} 1\nr{a="1"} 2\n', [("r", {"a": "1"}, 1.0, False)], id="a gauge twice"),
        pytest.param(
            'r{a="1",b="2"} 1\nr{b="2",a="1"} 2\n', [("r", {"a": "1", "b": "2"}, 1.0, False)], id="in another order"
        ),
        pytest.param(
            "# TYPE r_total counter\nr_total 100\n# TYPE r gauge\nr 5\n",
            [("r_total", {}, 100.0, True), ("r", {}, 5.0, False)],
            id="a counter and a gauge",
        ),
        pytest.param(
            'r 5\nr_total{code="200"} 1\nr_total{code="404"} 2\n',
            [("r", {}, 5.0, False), ("r_total", {"code": "200"}, 1.0, True), ("r_total", {"code": "404"}, 2.0, True)],
            id="with other labels",
        ),
    ],
)
def test_samples_of_one_name(body: str, samples: list[tuple[str, dict[str, str], float, bool]]) -> None:
    """The first one counts; a counter and a gauge are two metrics, which are not added up."""
    assert read(body) == samples


def test_quoted_names() -> None:
    """Names with dots and hyphens are served as they are; those that no path can have are left out."""
    body = '{"packets-per-second"} 5\n{"http.requests_total", code="200"} 3\n{"a/b"} 1\n{"a b"} 2\n'
    assert read(body) == [("packets-per-second", {}, 5.0, False), ("http.requests", {"code": "200"}, 3.0, True)]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e300", "9.3e15"])
def test_what_is_no_number_of_the_api_is_left_out(value: str) -> None:
    """Others of the same body stay."""
    assert read(f"a {value}\nb -2.5\n") == [("b", {}, -2.5, False)]


def test_old_samples_are_left_out() -> None:
    """Timestamps are milliseconds in the text format; five minutes are too old."""
    assert read(f"a 1 {int(NOW_S - 301) * 1000}\nb 2 {int(NOW_S - 299) * 1000}\n") == [("b", {}, 2.0, False)]


def test_an_empty_body_has_no_samples() -> None:
    """It is an exposition."""
    assert read("") == []


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<html>not found</html>", TEXT),
        ("a one\n", TEXT),
        ("depth 4\n", OPENMETRICS),
        ("# TYPE a histogram\na_bucket 1\n", OPENMETRICS),
        ("\x00" * 100, TEXT),
        ("a{" * 500, TEXT),
    ],
)
def test_what_is_no_exposition(body: str, content_type: str) -> None:
    """Every fault is one error, which says that it cannot be read."""
    with pytest.raises(ExpositionError, match=r"^it cannot be read: "):
        read(body, content_type)


def test_too_many_samples() -> None:
    """A body with more samples than the limit is refused as a whole."""
    body = "".join(f'a{{i="{i}"}} 1\n' for i in range(SAMPLES_MAX + 1))
    with pytest.raises(ExpositionError, match=f"^it has more than {SAMPLES_MAX} samples$"):
        read(body)
