"""Every operation that is served, from the OpenAPI documents, with those that these do not show.

Called by the tests of this folder, which are parametrized by it.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import fuzz_bodies as bodies
import fuzz_budget as budget
import fuzz_manifests as manifests
import fuzz_objects as objects
import fuzz_queries as queries
from fuzz_client import Request
from fuzz_server import RESOURCES, any_token

from podscaler.api.openapi import openapi
from podscaler.controlplane.apiserver.handlers.reviews import REVIEWS

METHODS = ("get", "post", "put", "patch", "delete")
_WIDGETS = "/apis/fuzz.example.com/{v}/namespaces/{{namespace}}/widgets"
_CUSTOM: dict[str, str] = {
    "/apis/fuzz.example.com/v1/widgets": "get",
    **{f"{_WIDGETS.format(v=v)}": "get post delete" for v in ("v1", "v2")},
    **{f"{_WIDGETS.format(v=v)}/{{name}}": "get put patch delete" for v in ("v1", "v2")},
    f"{_WIDGETS.format(v='v1')}/{{name}}/status": "get put patch",
    f"{_WIDGETS.format(v='v1')}/{{name}}/scale": "get put patch",
    "/apis/fuzz.example.com/v1/gadgets": "get post delete",
    "/apis/fuzz.example.com/v1/gadgets/{name}": "get put patch delete",
}
_PODS = "/api/v1/namespaces/{namespace}/pods/{name}"
_SESSIONS = {f"{_PODS}/{what}": "get post" for what in ("exec", "attach", "portforward")}
_PAGES = ("/", "/api", "/apis", "/version", "/healthz", "/livez", "/readyz", "/metrics", "/openapi/v2", "/openapi/v3")
_MORE_PAGES = ("/openid/v1/jwks", "/.well-known/openid-configuration", "/healthz/etcd", "/openapi/v3/apis/apps/v1")
_METRICS = {
    "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/{name}/a": "get",
    "/apis/custom.metrics.k8s.io/v1beta1/namespaces/{namespace}/metrics/{name}": "get",
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{name}": "get",
}


@dataclass(frozen=True)
class Operation:
    """A method of a path; `api_version` and `kind` are those of its body."""

    method: str
    path: str
    api_version: str = "v1"
    kind: str = ""

    @property
    def label(self) -> str:
        """`POST /api/v1/namespaces/{namespace}/pods`."""
        return f"{self.method} {self.path}"

    @property
    def body(self) -> objects.Object:
        """A valid body."""
        return manifests.valid(self.api_version, self.kind)

    @property
    def price(self) -> int:
        """How many examples of others one is worth: old forms of watches have little of their own, figures are long."""
        return 5 if "/watch/" in self.path else 10 if self.path == "/metrics" else 1

    @property
    def is_destructive(self) -> bool:
        """Whether it would remove what the server itself needs."""
        system = ("/api/v1/namespaces", "/apis/rbac", "/apis/apiextensions", "/apis/apiregistration", "/api/v1/nodes")
        return self.method == "DELETE" and not self.path.endswith("{name}") and self.path.startswith(system)


def all_operations() -> list[Operation]:
    """Every operation that is wanted."""
    return [operation for operation in _all() if budget.wants(operation.label)]


def _all() -> Iterator[Operation]:
    for make in openapi.documents(RESOURCES, [review.endpoint for review in REVIEWS]).values():
        for path, item in make()["paths"].items():
            for method in METHODS:
                if method in item and item[method].get("x-kubernetes-action") != "connect":  # _SESSIONS has those
                    yield _of(method.upper(), path, item[method])
    for path, methods in {**_CUSTOM, **_SESSIONS, **_METRICS, **dict.fromkeys((*_PAGES, *_MORE_PAGES), "get")}.items():
        for method in methods.upper().split():
            kind = "Gadget" if "gadgets" in path else "Scale" if path.endswith("/scale") else "Widget"
            version = (
                "autoscaling/v1"
                if kind == "Scale"
                else f"fuzz.example.com/{path.split('/')[3]}"
                if path.count("/") > 3
                else ""
            )
            yield Operation(method, path, version, kind)


def _of(method: str, path: str, operation: Any) -> Operation:
    kind = operation.get("x-kubernetes-group-version-kind") or {"group": "", "version": "v1", "kind": ""}
    group, version = kind["group"], kind["version"]
    return Operation(method, path, f"{group}/{version}" if group else version, kind["kind"])


def request(rng: random.Random, operation: Operation) -> Request:
    """A request to carry it out, right or wrong in any of its parts."""
    headers: dict[str, str] = {}
    body = None
    if operation.method in ("POST", "PUT"):
        headers["Content-Type"], body = _whole_body(rng, operation)
    elif operation.method == "PATCH":
        headers["Content-Type"], body = bodies.patch(rng, _named(operation.body))
    elif operation.method == "DELETE" and rng.random() < 0.4:
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            **manifests.valid("v1", "DeleteOptions"),
            "dryRun": ["All"],
        }
        headers["Content-Type"], body = bodies.encoded(rng, objects.mutated(rng, options), "meta/v1.DeleteOptions")
    if body is not None and rng.random() < 0.03:
        packed, body = bodies.packed(rng, body)
        headers |= packed
    headers |= queries.headers(rng)
    return Request(operation.method, _target(rng, operation), tuple(headers.items()), body, any_token(rng))


def _named(obj: objects.Object) -> objects.Object:
    return {**obj, "metadata": {"name": manifests.NAME, **obj.get("metadata", {})}}


def _whole_body(rng: random.Random, operation: Operation) -> tuple[str, bytes]:
    obj = _named(operation.body)
    message = bodies.message_of(obj)
    if operation.method == "POST" and rng.random() < 0.5:
        obj = {**obj, "metadata": {**obj["metadata"], "name": rng.choice(("f1", "f2", "f3", "Ä", ""))}}
    if message and rng.random() < 0.8:
        obj = objects.grown(rng, obj, message, rng.choice((1, 3, 8)))
    if rng.random() < 0.5:
        obj = objects.mutated(rng, obj)
    content_type, body = bodies.encoded(rng, obj, message)
    if rng.random() < 0.06:
        body = bodies.damaged(rng, body)
    if rng.random() < 0.03:
        content_type = rng.choice((*bodies.ODD_TYPES, bodies.YAML, bodies.PROTOBUF))
    return content_type, body


def _target(rng: random.Random, operation: Operation) -> str:
    names = ("f1", "nope", "..", "%00", "a%2Fb", "A", "x" * 300, "%ff")
    name = "fuzz2" if operation.api_version.startswith("events") else manifests.NAME
    name = {"APIService": "v1.fuzz", "CustomResourceDefinition": "gadgets.fuzz.example.com"}.get(operation.kind, name)
    path = operation.path.replace("{name}", name if rng.random() < 0.85 else rng.choice(names))
    path = path.replace("{namespace}", manifests.NAMESPACE if rng.random() < 0.9 else rng.choice(names))
    query = queries.query(rng, operation.method)
    if operation.is_destructive or (operation.method == "DELETE" and rng.random() < 0.7):
        query.append(("dryRun", "All"))
        query = [pair for pair in query if pair[0] != "dryRun" or pair[1] == "All"]
    text = "&".join(f"{quote(name)}={quote(value, errors='surrogatepass')}" for name, value in query)
    return f"{path}?{text}" if text else path
