"""A Prometheus for the benchmark of adapters, in a process of its own: counts queries, and answers them at once.

    python benchmarks/adapter_prometheus.py NAMESPACES APPS PODS NAMES

prints its port. The pods of an app have two of the metrics; an expression is answered by its matchers, which are those
of the benchmark's rule: of a namespace and of pods, or of none.
"""

import asyncio
import re
import sys

import msgspec
from aiohttp import web

_NAMESPACE = re.compile(r'namespace="([^"]+)"')
_METRIC = re.compile(r"metric_[0-9]+_total")
_PODS = re.compile(r'pod=~?"([^"]+)"')


class CountingPrometheus:
    """Answers and counts.

    Args:
        namespaces, apps, pods, names: how many there are; apps in each namespace, and pods of each app.
    """

    def __init__(self, namespaces: int, apps: int, pods: int, names: int) -> None:
        self._labels: dict[int, list[dict[str, str]]] = {name: [] for name in range(names)}
        for number in range(namespaces * apps):
            namespace, app = divmod(number, apps)
            for name in (2 * number % names, (2 * number + 1) % names):
                for pod in range(app * pods, (app + 1) * pods):
                    self._labels[name].append({"namespace": f"team-{namespace}", "pod": f"pod-{pod}"})
        self._all = {f"metric_{name}_total": self._answer(labels) for name, labels in self._labels.items()}
        self.count = 0

    @staticmethod
    def _answer(labels: list[dict[str, str]]) -> bytes:
        result = [{"metric": each, "value": [1_767_225_600, "12.5"]} for each in labels]
        return msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": result}})

    async def query(self, request: web.Request) -> web.Response:
        """One value of each pod."""
        self.count += 1
        promql = request.query["query"]
        pods = _PODS.search(promql)
        if pods is None or _NAMESPACE.search(promql) is None:
            return web.Response(body=self._all[_METRIC.findall(promql)[0]], content_type="application/json")
        return web.Response(
            body=self._answer([{"pod": pod} for pod in pods[1].split("|")]), content_type="application/json"
        )

    async def series(self, _: web.Request) -> web.Response:
        """All series."""
        data = [
            {"__name__": f"metric_{name}_total", **each} for name, labels in self._labels.items() for each in labels
        ]
        return web.Response(
            body=msgspec.json.encode({"status": "success", "data": data}), content_type="application/json"
        )

    async def counted(self, _: web.Request) -> web.Response:
        """How many queries there were."""
        return web.Response(text=str(self.count))


async def serve(numbers: list[int]) -> None:
    """Serve until the process ends."""
    database, app = CountingPrometheus(*numbers), web.Application()
    app.router.add_get("/api/v1/query", database.query)
    app.router.add_get("/api/v1/series", database.series)
    app.router.add_get("/count", database.counted)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve([int(text) for text in sys.argv[1:]]))
