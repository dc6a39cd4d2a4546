"""An adapter in virtual time, with a fake Prometheus and a scripted API server."""

from collections.abc import Sequence
from typing import Any

from podscaler.adapter import assembly
from podscaler.adapter.assembly import Adapter, AdapterServers, AdapterSettings
from podscaler.adapter.config import config_file
from podscaler.adapter.providers.object_values import Batching
from podscaler.adapter.providers.protocols import ExternalMetricsProvider
from podscaler.adapter.server.request_info import RequestInfo, parse
from podscaler.base.errors import StatusError
from podscaler.kube.client.client import Client
from podscaler.kube.serving.delegated_access import AccessError
from podscaler.testing.clock import VirtualClock
from podscaler.testing.prometheus import FakePrometheus
from podscaler.testing.transport import ScriptedTransport, json_answer

RULES = """
rules:
- seriesQuery: 'hits{namespace!=""}'
  resources: {template: "<<.Resource>>"}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: 'queue{name!=""}'
  resources: {namespaced: false}
  metricsQuery: <<.Series>>{<<.LabelMatchers>>}
"""
POD = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod"}
NAMESPACE = {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace"}
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"


class EverybodyMay:
    """Allows every request."""

    async def check(self, request: Any, info: RequestInfo) -> AccessError | None:
        """None: allowed."""


class AdapterWorld:
    """See the module; the namespaces `default` and `shop` have the pods web-1 and web-2."""

    def __init__(
        self,
        rules: str = RULES,
        *,
        batching: Batching = Batching.AUTO,
        tick_s: float = 10.0,
        external: Sequence[ExternalMetricsProvider] = (),
    ) -> None:
        self.clock = VirtualClock()
        self.database = FakePrometheus()
        self.kubernetes = ScriptedTransport()
        self.kubernetes.on("GET", "/apis", json_answer({"groups": []}))
        self.kubernetes.on("GET", "/api/v1", json_answer({"resources": [POD, NAMESPACE]}))
        for namespace in ("default", "shop"):
            items = [{"metadata": {"name": f"web-{n}", "namespace": namespace}} for n in (1, 2)]
            self.kubernetes.on("GET", f"/api/v1/namespaces/{namespace}/pods", json_answer({"items": items}))
            for n, value in ((1, 10.0), (2, 20.5)):
                self.database.add("hits", value, namespace=namespace, pod=f"web-{n}")
        self.database.add("queue", 7.0, name="mail")
        servers = AdapterServers(self.database, Client(self.kubernetes, self.clock), EverybodyMay())
        settings = AdapterSettings(batching=batching, tick_s=tick_s, watches=False)
        config = config_file.parse(rules, "f")
        self.adapter: Adapter = assembly.new_adapter(config, settings, servers, self.clock, external=external)

    async def started(self) -> "AdapterWorld":
        """The world after the first list of metrics."""
        await self.adapter.relisting.update()
        return self

    async def get(self, path: str) -> Any:
        """The body of a response, or the code and the message of an error."""
        where, _, query = path.partition("?")
        try:
            return await self.adapter.server.object(parse("GET", where, query))
        except StatusError as error:
            return error.code, str(error)

    async def values(self, path: str) -> Any:
        """The values of a list by object, or by the labels of an external metric; the error where there is one."""
        body = await self.get(path)
        if isinstance(body, tuple):
            return body
        return {
            (each["describedObject"]["name"] if "describedObject" in each else str(each["metricLabels"])): each["value"]
            for each in body["items"]
        }

    @property
    def sent(self) -> list[str]:
        """The expressions that Prometheus got."""
        return self.database.queries
