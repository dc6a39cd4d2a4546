"""What is written about requests: who did what to what, when, and what came of it; never a body, never a token.

Called by `app` around every request, where the user of `up` wants an audit log.

Source: audit.k8s.io/v1 Event at the level Metadata. Differs: the stages are ResponseStarted (streams only) and
ResponseComplete, and there is no policy: everything is written.
"""

from uuid import uuid4

from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock, rfc3339_micro
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.dispatch import Exchange
from podscaler.controlplane.apiserver.handlers.reviews import user_info
from podscaler.controlplane.auth.audit_log import AuditLog
from podscaler.controlplane.auth.rules import Attributes

_AUTHENTICATION_FAILED = "Authentication failed"


class Audit:
    """The account of one request.

    Args:
        log: where it goes.
        exchange: the request, as far as it is understood by the time of the call.
        clock: for the times.
    """

    def __init__(self, log: AuditLog, exchange: Exchange, clock: Clock) -> None:
        self._log = log
        self._exchange = exchange
        self._clock = clock
        self._id = str(uuid4())
        self._received_ns = clock.now_ns()
        self._is_stream = False

    async def started(self) -> None:
        """The head of a stream is sent."""
        self._is_stream = True
        await self._log.add(self._event("ResponseStarted", {"metadata": {}, "code": 200}))

    async def complete(self, code: int, error: StatusError | None = None) -> None:
        """The answer is made, or the stream has ended."""
        await self._log.add(self._event("ResponseComplete", _status(code, error)))

    async def broke_off(self) -> None:
        """The client left before the end."""
        await self._log.add(self._event("ResponseComplete", _status(200 if self._is_stream else 0, None)))

    def _event(self, stage: str, status: Object) -> Object:
        exchange, request = self._exchange, self._exchange.request
        event: Object = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self._id,
            "stage": stage,
            "requestURI": request.raw_path,
            "verb": exchange.wanted.verb if exchange.wanted is not None else request.method.lower(),
            "user": user_info(exchange.user) if exchange.user is not None else {},
        }
        event |= _acting(exchange)
        event["sourceIPs"] = [request.remote] if request.remote else []
        event["userAgent"] = request.headers.get("User-Agent", "")
        if exchange.wanted is not None and exchange.wanted.resource:
            event["objectRef"] = _reference(exchange.wanted, exchange.version)
        event["responseStatus"] = status
        event["requestReceivedTimestamp"] = rfc3339_micro(self._received_ns)
        event["stageTimestamp"] = rfc3339_micro(self._clock.now_ns())
        return event | _annotations(exchange, status)


def _acting(exchange: Exchange) -> Object:
    """The user acted for, where that is another one."""
    if exchange.acting is None or exchange.acting is exchange.user:
        return {}
    return {"impersonatedUser": user_info(exchange.acting)}


def _reference(wanted: Attributes, version: str) -> Object:
    parts = {
        "resource": wanted.resource,
        "namespace": wanted.namespace,
        "name": wanted.name,
        "apiGroup": wanted.group,
        "apiVersion": version,
        "subresource": wanted.subresource,
    }
    return {name: value for name, value in parts.items() if value}


def _status(code: int, error: StatusError | None) -> Object:
    if error is None:
        return {"metadata": {}, "code": code}
    status = {"metadata": {}, "status": "Failure", "message": error.message, "reason": error.reason, "code": code}
    if code == 401:
        status["message"] = _AUTHENTICATION_FAILED
    return status


def _annotations(exchange: Exchange, status: Object) -> Object:
    """How the request was judged; nothing where it did not come that far."""
    if exchange.reason is not None:
        decision, reason = "allow", exchange.reason
    elif exchange.acting is not None and status["code"] == 403:
        decision, reason = "forbid", ""
    else:
        return {}
    prefix = "authorization.k8s.io"
    return {"annotations": {f"{prefix}/decision": decision, f"{prefix}/reason": reason}}
