"""From a request to its handler: who asks, for what, in which form, and who answers.

Called by `app` for every request. The order of refusals is upstream's: identity (401), rights (403), path (404),
method (405), form (406); the rest is the handlers'.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from podscaler.api.machinery import names as name_rules
from podscaler.controlplane.aggregator.versions import Remote
from podscaler.controlplane.apiserver import custom_paths
from podscaler.controlplane.apiserver.auth_filter import Doors
from podscaler.controlplane.apiserver.discovery import metric_apis
from podscaler.controlplane.apiserver.handlers import (
    computed_objects,
    deletes,
    patching,
    proxy,
    reads,
    scales,
    subresources,
    token_requests,
    writes,
)
from podscaler.controlplane.apiserver.handlers.proxy import Forwarded
from podscaler.controlplane.apiserver.handlers.reviews import REVIEWS, Asking, Review
from podscaler.controlplane.apiserver.http import bodies, http_errors, names, negotiation, paths, queries, responses
from podscaler.controlplane.apiserver.http.bodies import BodyKind
from podscaler.controlplane.apiserver.http.paths import ResourcePath
from podscaler.controlplane.apiserver.http.queries import EMPTY, Query
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import Routes, Served
from podscaler.controlplane.apiserver.non_resource_handlers import Pages
from podscaler.controlplane.apiserver.streaming import pod_logs, pod_ports, pod_sessions
from podscaler.controlplane.apiserver.streaming.streams import Streams
from podscaler.controlplane.auth.rules import Attributes
from podscaler.controlplane.registry.users import User
from podscaler.controlplane.storage import field_selectors

Response = EncodedResponse | web.StreamResponse
Handler = Callable[[Plane, ResourceRequest], Awaitable[Response]]

OBJECT: dict[str, Handler] = {
    "GET": reads.get,
    "PUT": writes.replace,
    "PATCH": patching.patch,
    "DELETE": deletes.delete,
}
COLLECTION: dict[str, Handler] = {"GET": reads.list_all, "POST": writes.create, "DELETE": deletes.delete_collection}
SUBRESOURCES: dict[str, dict[str, Handler]] = {
    "status": OBJECT,
    "scale": {"GET": scales.get, "PUT": scales.replace, "PATCH": scales.patch},
    "log": {"GET": pod_logs.get},
    "exec": dict.fromkeys(("GET", "POST"), pod_sessions.execute),
    "attach": dict.fromkeys(("GET", "POST"), pod_sessions.attach),
    "portforward": dict.fromkeys(("GET", "POST"), pod_ports.forward),
    "binding": {"POST": subresources.bind},
    "eviction": {"POST": subresources.evict},
    "token": {"POST": token_requests.create},
    "finalize": {"PUT": subresources.finalize},
}

STREAMED = frozenset({"log", "exec", "attach", "portforward"})
"""What answers with a stream, whatever form of objects the client accepts."""

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_REVIEWS = {(review.group, "v1", review.plural): review for review in REVIEWS}


@dataclass(slots=True)
class Exchange:
    """One request as far as it is understood; `warnings` go out with whatever answer there is.

    Attributes:
        user, acting: who sent it, and for whom it is carried out.
        wanted, version: what it wants to do, and in which API version.
        reason: why it may be carried out, None as long as it may not.
    """

    request: web.BaseRequest
    warnings: list[str]
    query: Query = EMPTY
    user: User | None = None
    wanted: Attributes | None = None
    version: str = ""
    acting: User | None = None
    reason: str | None = None


class Dispatcher:
    """See the module."""

    def __init__(
        self,
        plane: Plane,
        routes: Routes,
        *,
        pages: Pages,
        streams: Streams,
        doors: Doors,
    ) -> None:
        self._plane = plane
        self._routes = routes
        self._pages = pages
        self._streams = streams
        self._doors = doors

    async def respond(self, exchange: Exchange) -> Response:
        """Carry out a request.

        Raises:
            StatusError: every refusal.
        """
        request = exchange.request
        path, query = paths.split(request.raw_path)
        exchange.user = user = self._doors.identify(request, path)
        exchange.query = Query(query) if query else EMPTY
        if paths.is_unfinished(path):
            return responses.unfinished_path(path)
        target = paths.parse(path)
        if target is None:
            return await self._to_page(exchange, path, query, user)
        exchange.wanted = _attributes(request.method, target, exchange.query)
        exchange.version = target.version
        acting = self._admit(exchange, user, exchange.wanted)
        if path.startswith("//"):
            return responses.NOT_FOUND_PAGE
        if (remote := self._plane.remote_of(target.group, target.version)) is not None:
            return await self._hand_on(Forwarded(request, path, query, acting, exchange.wanted), remote)
        return await self._to_resource(exchange, target, acting)

    async def _to_page(self, exchange: Exchange, path: str, query: str, user: User) -> Response:
        request = exchange.request
        exchange.wanted = Attributes(request.method.lower(), path=path)
        acting = self._admit(exchange, user, exchange.wanted)
        if path.startswith("//"):
            return responses.NOT_FOUND_PAGE
        root = paths.group_version(path)
        if root is not None and (remote := self._plane.remote_of(*root)) is not None:
            return await self._hand_on(Forwarded(request, path, query, acting, exchange.wanted), remote)
        return await self._pages.answer(request, path, exchange.query)

    async def _hand_on(self, asked: Forwarded, remote: Remote) -> Response:
        assert self._plane.aggregation is not None
        return await proxy.forward(self._plane.aggregation, remote, asked, self._streams)

    def _admit(self, exchange: Exchange, user: User, wanted: Attributes) -> User:
        """For whom the request is carried out. Raises StatusError 400, 403."""
        exchange.acting = acting = self._doors.acting_for(user, exchange.request, wanted)
        exchange.reason = self._doors.admit(acting, wanted)
        return acting

    async def _to_resource(self, exchange: Exchange, target: ResourcePath, user: User) -> Response:
        served = self._routes.find(target)
        if served is None:
            return await self._without_record(exchange, target, user)
        request = exchange.request
        if served.resource.is_custom:
            target = custom_paths.meant(target, request.method)
            custom_paths.check(served, target, request.method)
        methods = served.methods(target)
        if served.resource.is_custom and request.method not in methods:
            return responses.NOT_FOUND_PAGE
        if not methods:
            raise http_errors.no_such_path()
        if request.method not in methods:
            raise http_errors.method_not_allowed()
        if served.version.deprecation:
            exchange.warnings.append(served.version.deprecation)
        call = self._call(exchange, target, served)
        if _is_watch(target, request.method, exchange.query) and served.resource.stored:
            return await self._streams.watch(self._plane, call)
        return await _handler(call)(self._plane, call)

    def _call(self, exchange: Exchange, target: ResourcePath, served: Served) -> ResourceRequest:
        can_stream = exchange.request.method == "GET" and not target.name
        accept = "" if target.subresource in STREAMED else exchange.request.headers.get("Accept", "")
        form = negotiation.resource_form(accept, can_stream=can_stream, has_protobuf=served.has_protobuf)
        return ResourceRequest(exchange.request, target, exchange.query, served, form, exchange.warnings)

    async def _without_record(self, exchange: Exchange, target: ResourcePath, user: User) -> Response:
        """Paths of what is served but is no resource with a record: metrics, reviews and old bindings."""
        metrics = self._plane.metrics_of(target.group)
        if metrics is not None and metric_apis.serves(metrics, target.group, target.version):
            return await metric_apis.get(metrics, exchange.request, target, exchange.query)
        review = _REVIEWS.get((target.group, target.version, target.resource))
        if review is not None and not target.name and bool(target.namespace) == review.namespaced:
            return await self._review(exchange, review, target, user)
        if (target.group, target.resource) == ("", "bindings") and target.namespace and not target.name:
            if exchange.request.method != "POST":
                raise http_errors.method_not_allowed()
            pods = ResourcePath("", "v1", target.namespace, "pods", subresource="binding")
            served = self._routes.find(pods)
            if served is not None:
                return await subresources.bind(self._plane, self._call(exchange, pods, served))
        known = {*(group for group, _, _ in _REVIEWS), *(metrics.versions if metrics is not None else ())}
        is_ours = self._routes.has_group(target.group) or target.group in known
        if not is_ours or self._routes.is_custom(target.group):
            return responses.NOT_FOUND_PAGE
        raise http_errors.no_such_path()

    async def _review(self, exchange: Exchange, review: Review, target: ResourcePath, user: User) -> EncodedResponse:
        request = exchange.request
        if request.method != "POST":
            raise http_errors.method_not_allowed()
        form = negotiation.resource_form(request.headers.get("Accept", ""), can_stream=False)
        expected = BodyKind(f"{review.group}/v1", review.kind, review.message)
        validation = queries.write_options(exchange.query, "CreateOptions").field_validation
        body = await bodies.read(request)
        content_type = request.headers.get("Content-Type", "")
        received = bodies.decode(body, content_type, expected, {}, validation=validation)
        exchange.warnings.extend(received.warnings)
        asked = received.obj
        asked.setdefault("metadata", {})
        names.settle_namespace(asked, target.namespace)
        asking = Asking(user, self._doors.authenticator, self._doors.authorizer, self._plane.clock.now_ns())
        status = review.answer(asked, asking)
        obj = {**asked, "status": status}
        return await responses.of(obj, form, status=201)


def _handler(call: ResourceRequest) -> Handler:
    method = call.request.method
    if not call.served.resource.stored:
        return computed_objects.get if call.path.name else computed_objects.list_all
    if call.path.subresource:
        return SUBRESOURCES[call.path.subresource][method]
    return OBJECT[method] if call.path.name else COLLECTION[method]


def _is_watch(target: ResourcePath, method: str, query: Query) -> bool:
    if method != "GET":
        return False
    return target.watches or (not target.name and query is not EMPTY and bool(query.flag("watch")))


def _attributes(method: str, target: ResourcePath, query: Query) -> Attributes:
    verb = _verb(method, target, query)
    return Attributes(
        verb,
        group=target.group,
        resource=target.resource,
        subresource=target.subresource,
        namespace=target.namespace or (target.name if target.resource == "namespaces" else ""),
        name=target.name or (_selected_name(query) if verb in ("list", "watch") and query is not EMPTY else ""),
    )


def _selected_name(query: Query) -> str:
    """The one name that a list's field selector lets through, empty where it lets through others too."""
    try:
        terms = field_selectors.parse(query.text("fieldSelector"))
    except field_selectors.FieldSelectorError:
        return ""
    found = [term.value for term in terms if term.field == "metadata.name" and not term.negated]
    return found[0] if found and not name_rules.path_segment_faults(found[0]) else ""


def _verb(method: str, target: ResourcePath, query: Query) -> str:
    if method == "GET":
        if _is_watch(target, method, query):
            return "watch"
        return "get" if target.name else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    if method == "HEAD":
        return "get"
    return _VERBS.get(method, "")
