"""`serviceaccounts/NAME/token`: tokens of service accounts on request.

Called by `dispatch`. Answers are never stored and never logged.

Source: authentication.k8s.io/v1 TokenRequest, upstream's defaults, checks and messages.
"""

from dataclasses import dataclass
from typing import Any

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, rfc3339
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import bodies, http_errors, names, queries, responses
from podscaler.controlplane.apiserver.http.bodies import BodyKind
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.auth.account_tokens import AccountTokens, TokenTerms

TOKEN_REQUEST = BodyKind("authentication.k8s.io/v1", "TokenRequest", "authentication/v1.TokenRequest")
_GROUP = "authentication.k8s.io"
_LIFE_S = 3600
_LIFE_MIN_S = 600
_LIFE_MAX_S = 1 << 32
_BOUND_KINDS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


@dataclass(frozen=True, slots=True)
class _Reference:
    """To what a token is to be bound."""

    api_version: str
    kind: str
    name: str
    uid: str


async def create(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Make a token.

    Raises:
        StatusError: 400, 404 (also for what it is to be bound to), 409 (another uid), 413, 415, 422.
    """
    tokens = plane.accounts
    if tokens is None:
        raise http_errors.no_such_path()
    options = queries.write_options(call.query, "CreateOptions")
    body = await bodies.read(call.request)
    validation = options.field_validation
    received = bodies.decode(body, call.content_type, TOKEN_REQUEST, plane.kinds, validation=validation)
    call.warnings.extend(received.warnings)
    bodies.check_version(received, TOKEN_REQUEST)
    asked = received.obj
    names.settle_namespace(asked, call.path.namespace)
    _check_name(asked["metadata"].get("name"), call.path.name)
    account = plane.objects.get("serviceaccounts", call.path.namespace, call.path.name).decode()
    made = _answer(plane, tokens, asked, account)
    return await responses.of(made, call.form, status=201)


def _answer(plane: Plane, tokens: AccountTokens, asked: Object, account: Object) -> Object:
    now_ns = plane.clock.now_ns()
    spec: Object = dict(asked.get("spec") or {})
    spec["audiences"] = list(spec.get("audiences") or tokens.audiences)
    life_s = spec.get("expirationSeconds")
    spec["expirationSeconds"] = life_s = _LIFE_S if life_s is None else life_s
    spec.setdefault("boundObjectRef", None)
    _check_spec(spec)
    metadata = account["metadata"]
    bound = _bound(plane, spec["boundObjectRef"], metadata["namespace"], metadata["name"])
    token = tokens.issue(account, TokenTerms(spec["audiences"], life_s, bound))
    own = {"name": metadata["name"], "namespace": metadata["namespace"], "creationTimestamp": rfc3339(now_ns)}
    status = {"token": token, "expirationTimestamp": rfc3339(now_ns + life_s * NANOSECONDS)}
    return {**asked, "metadata": asked["metadata"] | own, "spec": spec, "status": status}


def _check_name(given: str | None, account: str) -> None:
    if given and given != account:
        text = "must match the service account name if specified"
        raise _invalid([field.invalid("metadata.name", given, text)], account)


def _check_spec(spec: Object) -> None:
    life_s = spec["expirationSeconds"]
    path = "spec.expirationSeconds"
    if life_s < _LIFE_MIN_S:
        raise _invalid([field.invalid(path, life_s, "may not specify a duration less than 10 minutes")])
    if life_s > _LIFE_MAX_S:
        raise _invalid([field.invalid(path, life_s, "may not specify a duration larger than 2^32 seconds")])


def _invalid(faults: list[FieldError], name: str = "") -> StatusError:
    return field.refusal(group=_GROUP, kind="TokenRequest", name=name, errors=faults)


def _bound(plane: Plane, given: Any, namespace: str, account: str) -> dict[str, Object]:
    """The objects with which the token is to die, and the node of a pod."""
    if given is None:
        return {}
    wanted = _Reference(*(given.get(key, "") for key in ("apiVersion", "kind", "name", "uid")))
    group, _, version = wanted.api_version.rpartition("/")
    resource = _BOUND_KINDS.get(wanted.kind)
    if group or resource is None:
        text = f"cannot bind token to object of type {group}/{version}, Kind={wanted.kind}"
        raise http_errors.bad_request(text)
    found = plane.objects.get(resource, "" if resource == "nodes" else namespace, wanted.name).decode()
    if resource == "pods" and (found["spec"].get("serviceAccountName") or "default") != account:
        text = f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        raise http_errors.bad_request(text)
    _check_uid(wanted, found)
    bound = {wanted.kind.lower(): found}
    node = plane.objects.find("nodes", "", found["spec"].get("nodeName", "")) if resource == "pods" else None
    return bound | ({"node": node.decode()} if node is not None else {})


def _check_uid(wanted: _Reference, found: Object) -> None:
    if not wanted.uid or wanted.uid == found["metadata"]["uid"]:
        return
    why = (
        f"the UID in the bound object reference ({wanted.uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
    text = f'Operation cannot be fulfilled on {wanted.kind} "{wanted.name}": {why}'
    raise StatusError(text, code=409, reason="Conflict", details={"name": wanted.name, "kind": wanted.kind})
