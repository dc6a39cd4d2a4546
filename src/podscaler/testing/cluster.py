"""A fake API server in memory, with the objects that an autoscaling controller uses: `FakeCluster`, a Transport.

Tests and benchmarks of controllers give it to a `podscaler.kube.client.client.Client`. It has HPAs, pods, scales of
Deployments, resource metrics, events, ConfigMaps and Leases, with the resource versions, watches and conflicts of an
API server. Nothing is validated or defaulted. Errors are injected with `interfere` and `fail`.

A request is answered by what a test has injected, by `_find_in_namespace` (GETs within a namespace), or else by
`_usual_response`, where the first path that fits counts. A further kind that is listed and watched is added to
`FakeCluster.collections` and DISCOVERY; a further path that is read or written, to `_usual_response`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import msgspec

from podscaler.api.machinery import selectors
from podscaler.kube.transport.transport import Request, Response, ResponseStream
from podscaler.testing.transport import Feed, Reply, ScriptedStream, TransportFailure, json_answer

Object = dict[str, Any]
"""An object as JSON."""

NAMESPACE = "shop"
"""The namespace of objects where none is stated."""

HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
POD_AUTOSCALERS = "/apis/podscaler.dev/v1alpha1/podautoscalers"
PODS = "/api/v1/pods"
RESOURCE_METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/"
APPS = "/apis/apps/v1/namespaces/"
DEPLOYMENTS = "/apis/apps/v1/deployments"
CONFIG_MAPS = "/api/v1/namespaces/kube-system/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/"
DISCOVERY: Mapping[str, Object] = {
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [{"name": "pods", "kind": "Pod"}, {"name": "services", "kind": "Service"}]},
    "/apis/apps": {"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
    "/apis/apps/v1": {
        "resources": [{"name": "deployments", "kind": "Deployment"}, {"name": "deployments/scale", "kind": "Scale"}]
    },
}


@dataclass
class Collection:
    """The objects of one resource, by namespace and name, and the open watches of them in all namespaces."""

    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    watchers: list[Feed] = field(default_factory=list)

    def announce(self, event_type: str, obj: Object) -> None:
        """Send a watch event of that type (ADDED, MODIFIED or DELETED) to all watches; `objects` stay as they are."""
        line = msgspec.json.encode({"type": event_type, "object": obj})
        for feed in self.watchers:
            feed.send(line)


class FakeCluster:
    """An API server in memory with autoscalers, pods, scales and metrics.

    Args:
        lists_deployments: whether Deployments can be listed and watched, or only their scales be read.

    Attributes:
        requests: all requests, in order.
        collections: the resources that can be listed and watched, by the path of their list in all namespaces.
        scales: the scale of each Deployment, by namespace and name.
        usage: the CPU usage of each pod as a quantity, by namespace and name.
        events: the Event objects that were created or patched, as sent.
        config_maps: the ConfigMaps of kube-system, by name.
        leases: the Leases of kube-system, by name; clients can only read them.
        hold_deployments: whether changes of Deployments are kept from their list and watch until `tell_deployment`
            is called without it.
    """

    server = "https://10.0.0.1:443"

    def __init__(self, *, lists_deployments: bool = False) -> None:
        self.requests: list[Request] = []
        self.events: list[Object] = []
        self.collections = {HPAS: Collection(), PODS: Collection()}
        if lists_deployments:
            self.collections[DEPLOYMENTS] = Collection()
        self.scales: dict[tuple[str, str], Object] = {}
        self.usage: dict[tuple[str, str], str] = {}
        self.config_maps: dict[str, Object] = {}
        self.leases: dict[str, Object] = {}
        self.hold_deployments = False
        self._version = 100
        self._interference: dict[tuple[str, str], deque[Reply | Callable[[Request], Reply | None]]] = {}
        self._failing: dict[str, Reply] = {}

    # For tests. Where an object that is to be changed does not exist, they raise KeyError.

    def put_autoscaler(
        self,
        name: str,
        spec: Object,
        *,
        namespace: str = NAMESPACE,
        uid: str = "u1",
        annotations: Mapping[str, str] | None = None,
        path: str = HPAS,
    ) -> None:
        """Create an autoscaler in the collection at `path`, or replace its spec, which increments its generation."""
        old = self.collections[path].objects.get((namespace, name))
        meta: Object = {"name": name, "namespace": namespace, "uid": uid, "annotations": annotations or {}}
        generation = old["metadata"]["generation"] + 1 if old else 1
        status = old["status"] if old else {"currentReplicas": 0, "desiredReplicas": 0, "currentMetrics": None}
        obj = {"metadata": meta | {"generation": generation}, "spec": spec, "status": status}
        self._store(path, obj)

    def report(self, name: str, status: Object, *, manager: str, at: str, namespace: str = NAMESPACE) -> None:
        """Write the status of an HPA as another controller `manager` does; `at` is the time in managedFields."""
        old = self.collections[HPAS].objects[namespace, name]
        entry = {"manager": manager, "operation": "Update", "subresource": "status", "time": at}
        metadata = old["metadata"] | {"managedFields": [entry]}
        self._store(HPAS, old | {"metadata": metadata, "status": status})

    def serve_pod_autoscalers(self) -> None:
        """Serve the resource podautoscalers from now on."""
        self.collections[POD_AUTOSCALERS] = Collection()

    def label_autoscaler(self, name: str, *, namespace: str = NAMESPACE, **labels: str) -> None:
        """Replace the labels of an HPA, which keeps its generation."""
        old = self.collections[HPAS].objects[namespace, name]
        self._store(HPAS, old | {"metadata": old["metadata"] | {"labels": labels}})

    def delete(self, path: str, name: str, *, namespace: str = NAMESPACE) -> None:
        """Delete an object of the collection at `path`."""
        obj = self.collections[path].objects.pop((namespace, name))
        tombstone = obj | {"metadata": obj["metadata"] | {"resourceVersion": self._next_version()}}
        self.collections[path].announce("DELETED", tombstone)

    def put_deployment(self, name: str, replicas: int, *, namespace: str = NAMESPACE, selector: str = "") -> None:
        """Create a Deployment with so many replicas, without pods; `selector` is by default app=NAME."""
        self.scales[namespace, name] = {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": self._next_version()},
            "spec": {"replicas": replicas},
            "status": {"replicas": replicas, "selector": selector or f"app={name}"},
        }
        self.tell_deployment(name, namespace=namespace)

    def tell_deployment(self, name: str, *, namespace: str = NAMESPACE) -> None:
        """Send the Deployment's present state to its watches; does nothing while `hold_deployments` is set.

        Its selector must be one label, as KEY=VALUE. Without `lists_deployments` there is nothing to send.
        """
        collection = self.collections.get(DEPLOYMENTS)
        if collection is None or self.hold_deployments:
            return
        scale = self.scales[namespace, name]
        key, value = scale["status"]["selector"].split("=")
        obj = {
            "metadata": dict(scale["metadata"]),
            "spec": dict(scale["spec"]) | {"selector": {"matchLabels": {key: value}}},
            "status": {"replicas": scale["status"]["replicas"]},
        }
        event_type = "MODIFIED" if (namespace, name) in collection.objects else "ADDED"
        collection.objects[namespace, name] = obj
        collection.announce(event_type, obj)

    def put_pod(self, name: str, app: str, cpu: str, *, namespace: str = NAMESPACE, request: str = "1") -> None:
        """Create or replace a pod that has been Ready since 2025, with its CPU usage and request."""
        long_ago = "2025-12-31T00:00:00Z"
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": long_ago}
        self.usage[namespace, name] = cpu
        self._store(
            PODS,
            {
                "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": {"app": app}},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": request}}}]},
                "status": {"phase": "Running", "startTime": long_ago, "conditions": [ready]},
            },
        )

    def interfere(self, method: str, path: str, *replies: Reply | Callable[[Request], Reply | None]) -> None:
        """Reply to the next requests of `method` to `path` (without query) with one of `replies` each, in order.

        A function gets the request, and may return None: the request has its usual response.
        """
        self._interference.setdefault((method, path), deque()).extend(replies)

    def fail(self, reply: Reply, *, below: str = "/") -> None:
        """Reply to every request whose path begins with `below` with `reply` until `recover`.

        With "/" the watches end, too: broken with the cause of a TransportFailure, and normally for another reply.
        """
        self._failing[below] = reply
        if below == "/":
            self.end_watches(reply.cause if isinstance(reply, TransportFailure) else "")

    def recover(self) -> None:
        """Undo `interfere` and `fail`; watches that have ended stay so."""
        self._interference.clear()
        self._failing.clear()

    def end_watches(self, cause: str = "") -> None:
        """End all watches normally, or, if `cause` is not empty, break their connections with it."""
        for collection in self.collections.values():
            for feed in collection.watchers:
                feed.cut(cause) if cause else feed.end()
            collection.watchers.clear()

    def asked(self, method: str, fragment: str = "") -> list[str]:
        """Path and query of the requests of `method` in which `fragment` occurs, in order."""
        return [request.target for request in self.requests if request.method == method and fragment in request.target]

    # The Transport.

    async def request(self, request: Request) -> Response:
        """Respond as the API server. Raises TransportError if a test has injected one."""
        self.requests.append(request)
        reply = self._injected_reply(request)
        await asyncio.sleep(0)
        if isinstance(reply, TransportFailure):
            raise reply.error(request, self.server)
        if reply is None:
            reply = self._find_in_namespace(request) or self._usual_response(request)
        assert isinstance(reply, Response), "a request that is no watch met a Feed"
        return reply

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ResponseStream]:
        """Watch a collection. Raises TransportError if a test has injected one."""
        self.requests.append(request)
        reply = self._injected_reply(request)
        await asyncio.sleep(0)
        if isinstance(reply, TransportFailure):
            raise reply.error(request, self.server)
        if reply is None:
            reply = Feed()
            collection = self.collections[request.path]
            collection.watchers.append(reply)
            self._catch_up(collection, reply, int(parse_qs(request.query)["resourceVersion"][0]))
        yield ScriptedStream(self.server, request, reply)

    async def close(self) -> None:
        """Do nothing: there are no connections."""

    def _injected_reply(self, request: Request) -> Reply | None:
        """The reply that a test has injected for the request; None if there is none."""
        for prefix, failing in self._failing.items():
            if request.path.startswith(prefix):
                return failing
        replies = self._interference.get((request.method, request.path))
        if not replies:
            return None
        reply = replies.popleft()
        return reply(request) if callable(reply) else reply

    def _catch_up(self, collection: Collection, feed: Feed, version: int) -> None:
        """Send a new watch the objects that changed after its resourceVersion."""
        for obj in collection.objects.values():
            if int(obj["metadata"]["resourceVersion"]) > version:
                feed.send(msgspec.json.encode({"type": "MODIFIED", "object": obj}))

    def _usual_response(self, request: Request) -> Response:
        """The usual response to a request that `_find_in_namespace` does not answer; 404 for an unknown path."""
        if request.path in DISCOVERY:
            return json_answer(DISCOVERY[request.path])
        if request.path == POD_AUTOSCALERS and request.path not in self.collections:
            return refusal(404, "NotFound", "the server could not find the requested resource")
        if request.path in self.collections:
            items = list(self.collections[request.path].objects.values())
            return json_answer({"metadata": {"resourceVersion": str(self._version)}, "items": items})
        if request.path.startswith(RESOURCE_METRICS):
            return self._pod_metrics(request)
        if request.path.startswith(APPS):
            return self._scale(request)
        if request.path.startswith(CONFIG_MAPS):
            return self._config_map(request)
        if request.path.removeprefix(LEASES) in self.leases:
            return json_answer(self.leases[request.path.removeprefix(LEASES)])
        if "/events" in request.path:
            self.events.append(msgspec.json.decode(request.body or b"{}"))
            return json_answer({}, 201)
        if request.path.endswith("/status"):
            return self._write_status(request)
        return refusal(404, "NotFound", f"{request.path} is not served")

    def _find_in_namespace(self, request: Request) -> Response | None:
        """The list of a namespace, or one object of it; None if the request is not a GET of either.

        An object that does not exist is a 404; events are those of the whole cluster.
        """
        prefix, _, rest = request.path.partition("/namespaces/")
        namespace, _, rest = rest.partition("/")
        plural, _, name = rest.partition("/")
        if request.method != "GET" or "/" in name:
            return None
        if plural == "events":
            return json_answer({"items": [event for event in self.events if "involvedObject" in event]})
        collection = self.collections.get(f"{prefix}/{plural}")
        if collection is None:
            return None
        if not name:
            return json_answer({"items": [obj for key, obj in collection.objects.items() if key[0] == namespace]})
        found = collection.objects.get((namespace, name))
        return refusal(404, "NotFound", f'{plural} "{name}" not found') if found is None else json_answer(found)

    def _config_map(self, request: Request) -> Response:
        """The response to a POST, GET or merge PATCH of a ConfigMap; a PATCH may have a resourceVersion to compare."""
        name = request.path.removeprefix(CONFIG_MAPS).removeprefix("/")
        body = msgspec.json.decode(request.body or b"{}")
        if request.method == "POST":
            name = body["metadata"]["name"]
            if name in self.config_maps:
                return refusal(409, "AlreadyExists", f'configmaps "{name}" already exists')
            self.config_maps[name] = body
            body["metadata"]["resourceVersion"] = self._next_version()
            return json_answer(body, 201)
        if name not in self.config_maps:
            return refusal(404, "NotFound", f'configmaps "{name}" not found')
        config_map = self.config_maps[name]
        version = config_map["metadata"].setdefault("resourceVersion", "1")
        if request.method == "PATCH":
            if body.get("metadata", {}).get("resourceVersion", version) != version:
                return conflict("configmaps", name)
            data = config_map.get("data", {}) | body["data"]
            config_map["data"] = {key: text for key, text in data.items() if text is not None}
            config_map["metadata"]["resourceVersion"] = self._next_version()
        return json_answer(config_map)

    def _pod_metrics(self, request: Request) -> Response:
        """The metrics of the pods that have a usage and that the request's label selector matches."""
        _, _, _, _, _, namespace, *_ = request.path.split("/")  # /apis/metrics.k8s.io/v1beta1/namespaces/NAMESPACE/pods
        selector = selectors.parse(parse_qs(request.query).get("labelSelector", [""])[0])
        items = [
            {
                "metadata": {"name": name, "namespace": namespace},
                "timestamp": "2026-01-01T00:00:00Z",
                "window": "30s",
                "containers": [{"name": "c", "usage": {"cpu": self.usage[namespace, name]}}],
            }
            for (pod_namespace, name), pod in self.collections[PODS].objects.items()
            if pod_namespace == namespace
            and (namespace, name) in self.usage
            and selector.matches(pod["metadata"]["labels"])
        ]
        return json_answer({"kind": "PodMetricsList", "items": items})

    def _scale(self, request: Request) -> Response:
        """The response to a GET or PUT of a scale; all pods that a PUT asks for count as made at once."""
        _, _, _, _, _, namespace, plural, name, *_ = request.path.split("/")
        scale = self.scales.get((namespace, name))
        if scale is None:
            return refusal(404, "NotFound", f'{plural}.apps "{name}" not found')
        if request.method == "PUT":
            sent_scale = msgspec.json.decode(request.body or b"{}")
            if sent_scale["metadata"]["resourceVersion"] != scale["metadata"]["resourceVersion"]:
                return conflict(f"{plural}.apps", name)
            scale["spec"]["replicas"] = scale["status"]["replicas"] = sent_scale["spec"].get("replicas", 0)
            scale["metadata"]["resourceVersion"] = self._next_version()
            self.tell_deployment(name, namespace=namespace)
        return json_answer(scale)

    def _write_status(self, request: Request) -> Response:
        """Replace the status of an autoscaler by that of the sent object, whose resourceVersion must be current."""
        _, _, group, version, _, namespace, plural, name, _ = request.path.split("/")
        path = f"/apis/{group}/{version}/{plural}"
        old = self.collections[path].objects.get((namespace, name))
        if old is None:
            return refusal(404, "NotFound", f'{plural}.{group} "{name}" not found')
        sent_object = msgspec.json.decode(request.body or b"{}")
        if sent_object["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]:
            return conflict(f"{plural}.{group}", name)
        return json_answer(self._store(path, old | {"status": sent_object["status"]}))

    def _store(self, path: str, obj: Object) -> Object:
        """Store an object with a new resourceVersion, send it to the watches, and return it."""
        collection = self.collections[path]
        obj = obj | {"metadata": obj["metadata"] | {"resourceVersion": self._next_version()}}
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        event_type = "MODIFIED" if key in collection.objects else "ADDED"
        collection.objects[key] = obj
        collection.announce(event_type, obj)
        return obj

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)


def refusal(code: int, reason: str, message: str) -> Response:
    """The response for an API error: a Status of failure."""
    return json_answer(
        {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "code": code}, code
    )


def conflict(resource: str, name: str) -> Response:
    """The response to a write with an outdated resourceVersion."""
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return refusal(409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": {text}')
