"""Builds the audit events of a request: user, verb, object, times and response status; never bodies or tokens.

`app` creates an `Audit` for every request, if there is an audit log; `auth.audit_log` writes the events. A new field of
audit events: a line in `Audit._event`.

Source: audit.k8s.io/v1 Event at the level Metadata. Differs: the stages are ResponseStarted (streams only) and
ResponseComplete, and there is no audit policy: every request is logged.
"""

from uuid import uuid4

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock, rfc3339_micro
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.dispatch import RequestContext
from podscaler.controlplane.apiserver.handlers.reviews import user_info
from podscaler.controlplane.auth.audit_log import AuditLog
from podscaler.controlplane.auth.authorizer import Attributes

_AUTHENTICATION_FAILED = "Authentication failed"
"""The message of a 401 in audit events; the response has another one."""


class Audit:
    """Logs the audit events of one request, which is received when this is created.

    Args:
        log: the audit log.
        context: what is known about the request; read at each event, as `dispatch` fills it in.
        clock: the times of the request and of the events.
    """

    def __init__(self, log: AuditLog, context: RequestContext, clock: Clock) -> None:
        self._log = log
        self._context = context
        self._clock = clock
        self._id = str(uuid4())
        self._received_ns = clock.now_ns()
        self._is_stream = False

    async def log_stream_start(self) -> None:
        """Log that the head of a stream was sent."""
        self._is_stream = True
        await self._log.add(self._event("ResponseStarted", {"metadata": {}, "code": 200}))

    async def log_completion(self, code: int, error: StatusError | None = None) -> None:
        """Log that the response, with the HTTP status `code`, is complete, or the stream has ended."""
        await self._log.add(self._event("ResponseComplete", _status(code, error)))

    async def log_disconnection(self) -> None:
        """Log that the client disconnected before the end: with code 200 if a stream had begun, else 0."""
        await self._log.add(self._event("ResponseComplete", _status(200 if self._is_stream else 0, None)))

    def _event(self, stage: str, status: Object) -> Object:
        """The audit event of a stage of the request."""
        context, request = self._context, self._context.http
        event: Object = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self._id,
            "stage": stage,
            "requestURI": request.raw_path,
            "verb": context.attributes.verb if context.attributes is not None else request.method.lower(),
            "user": user_info(context.user) if context.user is not None else {},
        }
        event |= _impersonated_user(context)
        event["sourceIPs"] = [request.remote] if request.remote else []
        event["userAgent"] = request.headers.get("User-Agent", "")
        if context.attributes is not None and context.attributes.resource:
            event["objectRef"] = _object_reference(context.attributes, context.version)
        event["responseStatus"] = status
        event["requestReceivedTimestamp"] = rfc3339_micro(self._received_ns)
        event["stageTimestamp"] = rfc3339_micro(self._clock.now_ns())
        return event | _annotations(context, status)


def _impersonated_user(context: RequestContext) -> Object:
    """The field of the impersonated user; empty without one."""
    if context.effective_user is None or context.effective_user is context.user:
        return {}
    return {"impersonatedUser": user_info(context.effective_user)}


def _object_reference(attributes: Attributes, version: str) -> Object:
    """The object that a request is about; empty fields are left out."""
    reference = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "apiGroup": attributes.group,
        "apiVersion": version,
        "subresource": attributes.subresource,
    }
    return {field: content for field, content in reference.items() if content}


def _status(code: int, error: StatusError | None) -> Object:
    """The Status of a response without its details; code 0 if the client disconnected before the response."""
    if error is None:
        return {"metadata": {}, "code": code}
    message = _AUTHENTICATION_FAILED if code == 401 else error.message
    return {"metadata": {}, "status": "Failure", "message": message, "reason": error.reason, "code": code}


def _annotations(context: RequestContext, status: Object) -> Object:
    """The field with the annotations of the authorizer's decision; empty if the request failed before the decision."""
    if context.reason is not None:
        decision, reason = "allow", context.reason
    elif context.effective_user is not None and status["code"] == 403:
        decision, reason = "forbid", ""
    else:
        return {}
    prefix = "authorization.k8s.io"
    return {"annotations": {f"{prefix}/decision": decision, f"{prefix}/reason": reason}}
