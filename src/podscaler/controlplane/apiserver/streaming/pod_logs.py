"""`GET .../pods/NAME/log`: a container's log as plain text, also as it grows.

Called by `dispatch`; the bytes come from the node's `PodLogs`.

Source: core/v1 PodLogOptions, its defaulting of the container and its refusals.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from aiohttp import web

from podscaler.api.machinery import field, instants
from podscaler.api.machinery.field import FieldError
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors, websockets
from podscaler.controlplane.apiserver.http.queries import Query
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.http.streaming_response import GrowingResponse
from podscaler.controlplane.apiserver.streaming import log_socket, pod_targets
from podscaler.controlplane.registry.providers import LogOptions


async def get(plane: Plane, call: ResourceRequest) -> EncodedResponse | web.StreamResponse:
    """The log that the call asks for.

    Raises:
        StatusError: 400, 404, 422, 503, before anything was sent.
    """
    options = _options(call.query, call.path.name, plane.clock.now_ns())
    pod = pod_targets.pod_of(plane, call)
    options = replace(options, container=pod_targets.container_of(options.container, pod))
    if not pod["spec"].get("nodeName"):
        return web.Response(status=204, headers={"Cache-Control": "no-cache, private"})
    pod_targets.check_node(plane, pod)
    if plane.logs is None:
        raise StatusError("logs are kept where pods run, and none run here", code=503, reason="ServiceUnavailable")
    chunks = plane.logs.stream(pod, options)
    first = await anext(chunks, b"")  # a refusal comes with the first chunk, when a status can still be sent
    if websockets.is_websocket(call.request):
        return await log_socket.send(plane, call, first, chunks)
    if options.follow:
        return await _followed(call.request, first, chunks)
    rest = [chunk async for chunk in chunks]
    return EncodedResponse(b"".join((first, *rest)), 200, "text/plain")


async def _followed(request: web.BaseRequest, first: bytes, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    async with GrowingResponse(request, "text/plain") as stream:
        await stream.write(first)
        async for chunk in chunks:
            await stream.write(chunk)
    return stream.response


def _options(query: Query, name: str, now_ns: int) -> LogOptions:
    tail, limit = query.number("tailLines"), query.number("limitBytes")
    since_s, since_time = query.number("sinceSeconds"), query.text("sinceTime")
    faults = _faults(tail=tail, limit=limit, since_s=since_s, since_time=since_time)
    if "stream" in query:  # a choice of streams is behind a feature gate that is off
        faults.append(field.forbidden("stream", "may not be specified"))
    if faults:
        raise field.refusal(group="", kind="PodLogOptions", name=name, errors=faults)
    return LogOptions(
        container=query.text("container"),
        follow=bool(query.flag("follow")),
        previous=bool(query.flag("previous")),
        timestamps=bool(query.flag("timestamps")),
        tail_lines=tail,
        since_ns=_since_ns(since_s, since_time, now_ns),
        limit_bytes=limit,
    )


def _faults(*, tail: int | None, limit: int | None, since_s: int | None, since_time: str) -> list[FieldError]:
    faults = []
    if tail is not None and tail < 0:
        faults.append(field.invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        faults.append(field.invalid("limitBytes", limit, "must be greater than 0"))
    if since_s is not None and since_time:
        faults.append(field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since_s is not None and since_s < 1:
        faults.append(field.invalid("sinceSeconds", since_s, "must be greater than 0"))
    return faults


def _since_ns(since_s: int | None, since_time: str, now_ns: int) -> int | None:
    if since_time:
        try:
            return instants.parse(since_time)
        except ValueError:
            layout = "2006-01-02T15:04:05Z07:00"
            text = f'parsing time "{since_time}" as "{layout}": cannot parse "{since_time}" as "2006"'
            raise http_errors.bad_request(text) from None
    return None if since_s is None else now_ns - since_s * NANOSECONDS
