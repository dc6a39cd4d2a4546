"""The fake Prometheus and a client of the real one give the same results and the same kinds of errors."""

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import prerequisites
from own_ports import own_place
from patience import WITHIN_S
from podscaler.adapter.prometheus.client import MetricsDatabase, PrometheusClient
from podscaler.adapter.prometheus.responses import PrometheusError
from podscaler.base.clock import NANOSECONDS
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.testing.clock import VirtualClock
from podscaler.testing.prometheus import FakePrometheus

PROGRAM = shutil.which("prometheus")
NOW_S = 1_767_225_600
STORED = [
    ("hits_total", {"namespace": "a", "pod": "x", "verb": "GET"}, [10.0, 40.0]),
    ("hits_total", {"namespace": "a", "pod": "x", "verb": "PUT"}, [5.0, 8.0]),
    ("hits_total", {"namespace": "a", "pod": "y", "verb": "GET"}, [7.0, 1.0]),
    ("hits_total", {"namespace": "b", "pod": "x", "verb": "GET"}, [2.0, 4.0]),
    ("limit", {"namespace": "a", "pod": "x"}, [4.0, 4.0]),
    ("limit", {"namespace": "b", "pod": "x"}, [0.0, 0.0]),
]
QUERIES = [
    "hits_total",
    'hits_total{pod="x",verb!="PUT"}',
    'hits_total{pod=~"x|z",verb!~"P.*"}',
    '{__name__="limit",missing=""}',
    "sum(hits_total) by (pod)",
    "avg by (pod,namespace) (hits_total)",
    "min(hits_total) without (verb)",
    "max(hits_total)",
    "count(hits_total) by (namespace)",
    "topk(1, hits_total) by (namespace)",
    "sum(irate(hits_total[2m])) by (pod,namespace)",
    "max_over_time(hits_total[2m])",
    "last_over_time(limit[2m])",
    "sum(hits_total) by (pod,namespace) / sum(limit) by (pod,namespace)",
    "sum(hits_total) by (pod,namespace) / on(pod,namespace) group_left() limit",
    "hits_total * 2",
    "hits_total > 5",
    "hits_total > bool 5",
    "limit and on(pod) hits_total",
    'limit unless on(namespace) hits_total{namespace="b"}',
    "limit or hits_total",
    "absent(hits_total)",
    "absent(missing)",
    'scalar(limit{namespace="a"})',
    "vector(1)",
    "-limit",
    "abs(-limit)",
    "missing",
]
REJECTED = ["sum(", "sum(hits_total) by (", "hits_total / on(pod) limit", "unknown_function(limit)"]


async def real(folder: Path) -> AsyncIterator[MetricsDatabase]:
    """A client of a Prometheus with the stored series."""
    assert PROGRAM is not None
    lines = []
    for name in dict.fromkeys(each[0] for each in STORED):
        lines.append(f"# TYPE {name.removesuffix('_total')} {'counter' if name.endswith('_total') else 'gauge'}")
        for _, labels, values in (each for each in STORED if each[0] == name):
            shown = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
            lines += [f"{name}{{{shown}}} {value} {NOW_S - 60 * (1 - n)}" for n, value in enumerate(values)]
    (folder / "input").write_text("\n".join([*lines, "# EOF\n"]))
    promtool = Path(PROGRAM).parent / "promtool"
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", folder / "input", folder / "data"]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, timeout=WITHIN_S)
    (folder / "prometheus.yml").write_text("{}")
    host, port = own_place()
    flags = [f"--config.file={folder}/prometheus.yml", f"--web.listen-address={host}:{port}"]
    flags += [f"--storage.tsdb.path={folder}/data", "--storage.tsdb.retention.time=100y"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([PROGRAM, *flags], stdout=log, stderr=log)
    transport = await http_transport.connect(Config(f"http://{host}:{port}"), user_agent="test")
    client = PrometheusClient(transport, VirtualClock(NOW_S * NANOSECONDS), timeout_s=WITHIN_S)
    try:
        await _wait_ready(client)
        yield client
    finally:
        await transport.close()
        process.terminate()
        process.wait(timeout=WITHIN_S)


async def _wait_ready(client: PrometheusClient) -> None:
    async with asyncio.timeout(WITHIN_S):
        while True:
            try:
                await client.query("vector(1)")
            except PrometheusError:
                await asyncio.sleep(0.1)
            else:
                return


def fake() -> FakePrometheus:
    """The fake with the stored series."""
    stored = [
        ({"__name__": name, **labels}, [(NOW_S - 60.0 * (1 - n), value) for n, value in enumerate(values)])
        for name, labels, values in STORED
    ]
    return FakePrometheus(now_s=NOW_S, stored=stored)


async def results(database: MetricsDatabase) -> dict[str, object]:
    """What a database answers to all queries, elements in any order."""
    found: dict[str, object] = {}
    for promql in QUERIES:
        result = await database.query(promql)
        found[promql] = result.kind, sorted((sorted(each.labels.items()), repr(each.value)) for each in result.samples)
    for promql in REJECTED:
        with pytest.raises(PrometheusError) as error:
            await database.query(promql)
        found[promql] = error.value.kind in {"bad_data", "execution"}
    series = await database.series('hits_total{pod="x"}', max_age_s=300.0)
    found["series"] = sorted(sorted(each.items()) for each in series)
    return found


@pytest.mark.slow
@prerequisites.PROMETHEUS.mark(is_there=PROGRAM is not None)
async def test_the_fake_answers_as_the_real_one(tmp_path: Path) -> None:
    """Selectors, functions, aggregations, operators and errors have the same results."""
    async for client in real(tmp_path):
        assert await results(fake()) == await results(client)


async def test_the_fake_counts_queries() -> None:
    """All expressions are kept in their order, rejected ones too."""
    database = fake()
    await results(database)
    assert database.queries == QUERIES + REJECTED
