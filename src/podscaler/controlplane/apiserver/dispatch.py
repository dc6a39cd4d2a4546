"""Finds and calls the handler of a request, after authentication, authorization and content negotiation.

`app` calls `Dispatcher.respond` for every request: GET /apis/apps/v1/namespaces/default/deployments/web goes to
`reads.get`. Requests are checked in this order, so that clients see the same first error as of kube-apiserver: timeout
(400), authentication (401), authorization (403), path (404), method (405), form (406); then the checks of the handler.
A new subresource: its handlers in `SUBRESOURCE_HANDLERS` (if its responses are streams, also in
`STREAMED_SUBRESOURCES`), its kind and methods in `http.routes._subresources`.

Source: kube-apiserver's request deadline for `?timeout=`; the API server of custom resources for `_check_custom_path`
(tests/conformance/golden/scale.jsonl). Differs: `timeout` is validated, but sets no deadline.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qs

from aiohttp import web

from podscaler.api.crd import webhook_conversion
from podscaler.api.machinery import duration
from podscaler.api.machinery import names as name_rules
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text
from podscaler.controlplane.aggregator.remote_versions import Remote
from podscaler.controlplane.apiserver.auth_filter import AuthFilter
from podscaler.controlplane.apiserver.discovery import metric_apis
from podscaler.controlplane.apiserver.handlers import (
    deletes,
    endpoint_proxy,
    patching,
    reads,
    remote_proxy,
    scales,
    subresources,
    token_requests,
    writes,
)
from podscaler.controlplane.apiserver.handlers.remote_proxy import ProxiedRequest
from podscaler.controlplane.apiserver.handlers.reviews import REVIEWS, Review, ReviewContext
from podscaler.controlplane.apiserver.http import (
    http_errors,
    negotiation,
    query_options,
    request_bodies,
    request_paths,
    response_encoder,
    responses,
)
from podscaler.controlplane.apiserver.http.query_options import EMPTY_QUERY, Query
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind
from podscaler.controlplane.apiserver.http.request_paths import ResourcePath
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.routes import PROXY_METHODS, Routes, ServedResource
from podscaler.controlplane.apiserver.non_resource_handlers import NonResourceHandlers
from podscaler.controlplane.apiserver.streaming import pod_logs, pod_ports, pod_sessions
from podscaler.controlplane.apiserver.streaming.watch_streams import OpenStreams
from podscaler.controlplane.apiserver.webhooks import matching
from podscaler.controlplane.auth.authorizer import Attributes
from podscaler.controlplane.registry import object_preparation, remote_admission
from podscaler.controlplane.registry.remote_admission import CONNECTED_SUBRESOURCES, WriteContext
from podscaler.controlplane.registry.users import User
from podscaler.controlplane.storage import field_selectors

Response = EncodedResponse | web.StreamResponse
Handler = Callable[[ServerContext, ResourceRequest], Awaitable[Response]]

OBJECT_HANDLERS: dict[str, Handler] = {
    "GET": reads.get,
    "PUT": writes.replace,
    "PATCH": patching.patch,
    "DELETE": deletes.delete,
}
COLLECTION_HANDLERS: dict[str, Handler] = {
    "GET": reads.list_all,
    "POST": writes.create,
    "DELETE": deletes.delete_collection,
}
"""The handler by HTTP method: for paths of objects, and for paths of collections."""
SUBRESOURCE_HANDLERS: dict[str, dict[str, Handler]] = {
    "status": OBJECT_HANDLERS,
    "approval": OBJECT_HANDLERS,
    "scale": {"GET": scales.get, "PUT": scales.replace, "PATCH": scales.patch},
    "log": {"GET": pod_logs.get},
    "exec": dict.fromkeys(("GET", "POST"), pod_sessions.execute),
    "attach": dict.fromkeys(("GET", "POST"), pod_sessions.attach),
    "portforward": dict.fromkeys(("GET", "POST"), pod_ports.forward),
    "binding": {"POST": subresources.bind},
    "eviction": {"POST": subresources.evict},
    "token": {"POST": token_requests.create},
    "finalize": {"PUT": subresources.finalize},
    "proxy": dict.fromkeys(PROXY_METHODS, endpoint_proxy.forward),
}

SUBRESOURCES_WITHOUT_TABLES = frozenset({"binding", "eviction", "token"})
"""Subresources whose response has no Table: a request that accepts nothing else is a 406, and nothing is done."""
STREAMED_SUBRESOURCES = frozenset({"log", "exec", "attach", "portforward", "proxy"})
"""Subresources that respond with a stream, without content negotiation."""

_TIMEOUT_PARAMETER = "timeout"
_LONG_RUNNING_SUFFIXES = ("attach", "exec", "log", "portforward", "proxy")
"""The ends of the paths of requests that have no deadline; an object with such a name counts as one, too."""
_VERB_BY_METHOD = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_CUSTOM_VERB_BY_METHOD = {**_VERB_BY_METHOD, "DELETE": "delete", "GET": "get"}
"""The verbs in messages about custom resources."""
_REVIEW_BY_RESOURCE = {(review.group, "v1", review.plural): review for review in REVIEWS}
"""The kinds of reviews by group, version and plural."""


@dataclass(slots=True)
class RequestContext:
    """One HTTP request with what was found out about it; `Dispatcher.respond` fills it in, `app` and `audit` read it.

    Attributes:
        http: the request as aiohttp parsed it.
        warnings: texts for `Warning` headers of the response, also of an error.
        query: the query parameters.
        user, effective_user: the sender of the request, and the user with whose rights it is carried out
            (impersonation); None until they are known.
        attributes, version: the attributes to authorize, and the API version of a resource path; None and empty until
            the path is parsed.
        reason: the authorizer's reason, None until the request is authorized.
    """

    http: web.BaseRequest
    warnings: list[str] = field(default_factory=list)
    query: Query = EMPTY_QUERY
    user: User | None = None
    attributes: Attributes | None = None
    version: str = ""
    effective_user: User | None = None
    reason: str | None = None


class Dispatcher:
    """Routes requests to handlers.

    Args:
        server: passed to every handler.
        routes: the served resources.
        non_resource: handles paths that are no resources (discovery, health).
        streams: runs watches.
        auth_filter: authenticates and authorizes.
    """

    def __init__(
        self,
        server: ServerContext,
        routes: Routes,
        *,
        non_resource: NonResourceHandlers,
        streams: OpenStreams,
        auth_filter: AuthFilter,
    ) -> None:
        self._server = server
        self._routes = routes
        self._non_resource = non_resource
        self._streams = streams
        self._auth_filter = auth_filter

    async def respond(self, context: RequestContext) -> Response:
        """Carry out a request; returns a complete response, or a stream that has ended.

        Raises:
            StatusError: every API error.
            ConnectionError: the client has disconnected.
        """
        check_timeout(context.http.raw_path)
        path, query = request_paths.split(context.http.raw_path)
        context.user = user = self._auth_filter.authenticate(context.http, path)
        context.query = Query(query) if query else EMPTY_QUERY  # tests for EMPTY_QUERY below only save time
        if request_paths.is_watch_without_resource(path):
            return responses.watch_without_resource(path)
        target = request_paths.parse(path)
        if target is None:
            attributes = Attributes(context.http.method.lower(), path=path)
        else:
            attributes = _attributes(context.http.method, target, context.query)
            context.version = target.version
        context.attributes = attributes
        context.effective_user = user = self._auth_filter.effective_user(user, context.http, attributes)
        context.reason = self._auth_filter.authorize(user, attributes)
        if path.startswith("//"):  # as by kube-apiserver: authorized, but served by no handler
            return responses.NOT_FOUND_PAGE
        group_version = request_paths.group_version(path) if target is None else (target.group, target.version)
        remote = self._server.remote_of(*group_version) if group_version is not None else None
        if remote is not None:
            return await self._proxy_to_remote(ProxiedRequest(context.http, path, query, user, attributes), remote)
        if target is None:
            return await self._non_resource.respond(context.http, path, context.query)
        return await self._respond_to_resource(context, target, user)

    async def _proxy_to_remote(self, proxied: ProxiedRequest, remote: Remote) -> Response:
        """The response of the extension API server that an APIService names for the group and version."""
        assert self._server.parts.aggregation is not None  # `remote_of` found `remote` there
        return await remote_proxy.forward(self._server.parts.aggregation, remote, proxied, self._streams)

    async def _respond_to_resource(self, context: RequestContext, target: ResourcePath, user: User) -> Response:
        """The response to a request for a resource.

        Raises StatusError 404 for an unknown path, 405, 406, those of `_check_custom_path` and of the handler.
        """
        served, method = self._routes.find(target), context.http.method
        if served is None:
            return await self._respond_to_unrouted(context, target, user)
        if served.resource.is_custom:
            if method == "POST" and target.name and not target.subresource:
                target = replace(target, name="")  # a POST creates what its body names
            _check_custom_path(served, target, method)
        methods = served.methods(target)
        if served.resource.is_custom and method not in methods:
            return responses.NOT_FOUND_PAGE
        if not methods:
            raise http_errors.no_such_path()
        if method not in methods:
            raise http_errors.method_not_allowed()
        if served.version.deprecation:
            context.warnings.append(served.version.deprecation)
        request = _resource_request(context, target, served)
        remote_admission.set_context(WriteContext(served.api_version, context.warnings))
        if _is_watch(target, method, context.query) and served.resource.stored:
            return await self._streams.watch(self._server, request)
        with webhook_conversion.scope(is_new=True):  # keeps results of conversion webhooks until the request ends
            if target.subresource in CONNECTED_SUBRESOURCES:
                await self._admit_connection(request)
            return await _handler(request)(self._server, request)

    async def _admit_connection(self, request: ResourceRequest) -> None:
        """Let admission webhooks review a connection (`exec`, `proxy` and others) with its options.

        Raises StatusError if a webhook denies it or cannot be called.
        """
        target, resource, query = request.path, request.served.resource, request.query
        options: Object = {"kind": matching.OPTIONS_KINDS[target.subresource, resource.plural], "apiVersion": "v1"}
        options |= {name: True for name in ("stdin", "stdout", "stderr", "tty") if query.flag(name)}
        path, _ = request_paths.split(request.http.raw_path)
        _, _, path_after_subresource = path.partition(f"/{target.name}/{target.subresource}")
        parameters = {
            "container": query.text("container"),
            "command": query.texts("command"),
            "path": path_after_subresource,
        }
        options |= {name: value for name, value in parameters.items() if value}
        object_key = target.namespace, target.name
        await remote_admission.admit_connection(
            self._server.objects.admission, resource, target.subresource, object_key, options
        )

    async def _respond_to_unrouted(self, context: RequestContext, target: ResourcePath, user: User) -> Response:
        """Serve the paths that are in no route: metrics APIs, reviews and the deprecated collection of bindings.

        Raises StatusError 404 for other paths of groups with built-in kinds (else the 404 page), those of the handlers.
        """
        metrics = self._server.metrics_of(target.group)
        if metrics is not None and metric_apis.serves(metrics, target.group, target.version):
            return await metric_apis.get(metrics, context.http, target, context.query)
        review = _REVIEW_BY_RESOURCE.get((target.group, target.version, target.resource))
        if review is not None and not target.name and bool(target.namespace) == review.namespaced:
            return await self._evaluate_review(context, review, target, user)
        is_bindings = (target.group, target.version, target.resource) == ("", "v1", "bindings")
        if is_bindings and target.namespace and not target.name:
            if context.http.method != "POST":
                raise http_errors.method_not_allowed()
            binding_path = ResourcePath("", "v1", target.namespace, "pods", subresource="binding")
            served = self._routes.find(binding_path)
            if served is not None:
                return await subresources.bind(self._server, _resource_request(context, binding_path, served))
        review_groups = {group for group, _, _ in _REVIEW_BY_RESOURCE}
        unrouted_groups = {*review_groups, *(metrics.versions if metrics is not None else ())}
        is_served_group = self._routes.has_group(target.group) or target.group in unrouted_groups
        if not is_served_group or self._routes.is_custom(target.group):
            return responses.NOT_FOUND_PAGE
        raise http_errors.no_such_path()

    async def _evaluate_review(
        self, context: RequestContext, review: Review, target: ResourcePath, user: User
    ) -> EncodedResponse:
        """The response to a POST of a review: the review with its status, which is not stored.

        Raises StatusError 400, 405, 406, 408, 413, 415, 422, 500.
        """
        request = context.http
        if request.method != "POST":
            raise http_errors.method_not_allowed()
        form = negotiation.resource_form(request.headers.get("Accept", ""), can_stream=False, has_tables=False)
        expected = BodyKind(f"{review.group}/v1", review.kind, review.message)
        validation = query_options.write_options(context.query, "CreateOptions").field_validation
        body = await request_bodies.read(request)
        content_type = request.headers.get("Content-Type", "")
        received = request_bodies.decode(body, content_type, expected, {}, validation=validation)
        context.warnings.extend(received.warnings)
        review_object, auth = received.obj, self._auth_filter
        review_object.setdefault("metadata", {})
        object_preparation.set_namespace(review_object, target.namespace)
        review_context = ReviewContext(user, auth.authenticator, auth.authorizer, self._server.clock.now_ns())
        status = review.evaluate(review_object, review_context)
        encoded = json_text.encode({**review_object, "status": status})
        if form.shape == "partial":
            encoded = response_encoder.partial(encoded, form.meta_version)
        return await responses.from_json(encoded, form, status=201)


def check_timeout(raw_path: str) -> None:
    """Check that the parameter `timeout` of a request that is not long-running is a duration; it has no other effect.

    Raises StatusError 400.
    """
    if f"{_TIMEOUT_PARAMETER}=" not in raw_path:
        return
    path, _, query = raw_path.partition("?")
    parameters = parse_qs(query)  # not as `Query`, whose errors come after authentication
    timeout = parameters.get(_TIMEOUT_PARAMETER, [""])[0]
    is_watch = parameters.get("watch", [""])[0] in ("1", "true")
    is_long_running = path.endswith(_LONG_RUNNING_SUFFIXES) or "/proxy/" in path or is_watch
    if not timeout or is_long_running:
        return
    try:
        duration.parse(timeout)
    except ValueError as error:
        raise http_errors.bad_request(f"invalid timeout specified in the request URL - {error}") from None


def _check_custom_path(served: ServedResource, target: ResourcePath, method: str) -> None:
    """Check a path of custom resources, whose errors differ from those of built-in ones.

    Raises StatusError 400 for a PUT or PATCH without a name, 404 for a missing subresource, 405.
    """
    resource = served.resource
    if target.subresource and target.subresource not in served.subresources:
        raise api_errors.not_found(resource, target.name)
    if method in ("PUT", "PATCH") and not target.name:
        raise http_errors.bad_request("name must be provided")
    methods = served.methods(target)
    if methods and method not in methods and not served.is_over_all_namespaces(target):
        raise http_errors.verb_not_supported(_CUSTOM_VERB_BY_METHOD.get(method, ""), resource.group, resource.plural)


def _resource_request(context: RequestContext, target: ResourcePath, served: ServedResource) -> ResourceRequest:
    """The request as handlers get it, with the negotiated form of the response. Raises StatusError 406."""
    can_stream = context.http.method == "GET" and not target.name
    accept = "" if target.subresource in STREAMED_SUBRESOURCES else context.http.headers.get("Accept", "")
    form = negotiation.resource_form(
        accept,
        can_stream=can_stream,
        has_protobuf=served.has_protobuf,
        has_tables=target.subresource not in SUBRESOURCES_WITHOUT_TABLES,
    )
    return ResourceRequest(context.http, target, context.query, served, form, context.warnings)


def _handler(request: ResourceRequest) -> Handler:
    """The handler of a request, by path and method; the caller has checked that the method is served."""
    method, path = request.http.method, request.path
    if not request.served.resource.stored:
        return reads.get_computed if path.name else reads.list_computed
    if path.subresource:
        return SUBRESOURCE_HANDLERS[path.subresource][method]
    return OBJECT_HANDLERS[method] if path.name else COLLECTION_HANDLERS[method]


def _is_watch(target: ResourcePath, method: str, query: Query) -> bool:
    """Whether a request is a watch: a GET of a collection with `watch=true`, or of a deprecated path `watch/...`."""
    if method != "GET":
        return False
    return target.is_deprecated_watch or (not target.name and query is not EMPTY_QUERY and bool(query.flag("watch")))


def _attributes(method: str, target: ResourcePath, query: Query) -> Attributes:
    """The attributes to authorize; a list or watch by the name of one object counts as a request for that object."""
    verb = _verb(method, target, query)
    namespace, name = target.namespace, target.name
    if not namespace and target.resource == "namespaces":
        namespace = name
    if not name and verb in ("list", "watch") and query is not EMPTY_QUERY:
        name = _selected_name(query)
    return Attributes(
        verb,
        group=target.group,
        resource=target.resource,
        subresource=target.subresource,
        namespace=namespace,
        name=name,
    )


def _selected_name(query: Query) -> str:
    """The name that the field selector of a list requires, empty if it requires none."""
    try:
        terms = field_selectors.parse(query.text("fieldSelector"))
    except field_selectors.FieldSelectorError:
        return ""
    names = [term.value for term in terms if term.field == "metadata.name" and not term.negated]
    return names[0] if names and not name_rules.path_segment_errors(names[0]) else ""


def _verb(method: str, target: ResourcePath, query: Query) -> str:
    """The verb of a request as RBAC knows it; empty for other methods (OPTIONS)."""
    if method == "GET":
        if _is_watch(target, method, query):
            return "watch"
        return "get" if target.name else "list"
    if method == "DELETE":
        return "delete" if target.name else "deletecollection"
    if method == "HEAD":
        return "get"
    return _VERB_BY_METHOD.get(method, "")
