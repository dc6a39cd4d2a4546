"""Handles POST `serviceaccounts/NAME/token`: issues a token of a service account (`kubectl create token`).

`dispatch` calls it; `auth.account_tokens` signs the token. The response with the token is never stored or logged.

Source: authentication.k8s.io/v1 TokenRequest; kube-apiserver's defaults, validation and messages.
"""

from typing import Any

from podscaler.api.machinery import field
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, rfc3339
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors, query_options, responses
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.auth.account_tokens import DEFAULT_AUDIENCES, AccountTokens, TokenTerms
from podscaler.controlplane.registry import object_preparation

TOKEN_REQUEST = BodyKind("authentication.k8s.io/v1", "TokenRequest", "authentication/v1.TokenRequest")
_GROUP = "authentication.k8s.io"
_DEFAULT_LIFE_S = 3600
_MIN_LIFE_S = 600
_MAX_LIFE_S = 1 << 32
_BOUND_KINDS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


async def create(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The response with a TokenRequest and its new token.

    Raises StatusError 400, 404 (the account or the bound object), 408, 409 (another uid), 413, 415, 422.
    """
    tokens = server.parts.accounts
    if tokens is None:
        raise http_errors.no_such_path()
    options = query_options.write_options(request.query, "CreateOptions")
    token_request = (await request.receive(TOKEN_REQUEST, server.kinds, options)).obj
    object_preparation.set_namespace(token_request, request.path.namespace)
    _check_name(token_request["metadata"].get("name"), request.path.name)
    account = server.objects.get("serviceaccounts", request.path.namespace, request.path.name).decode()
    issued = _issue(server, tokens, token_request, account)
    return await responses.encode_object(issued, request.form, status=201)


def _issue(server: ServerContext, tokens: AccountTokens, token_request: Object, account: Object) -> Object:
    """The TokenRequest with defaults and with the token in its status."""
    now_ns = server.clock.now_ns()
    spec: Object = dict(token_request.get("spec") or {})
    spec["audiences"] = list(spec.get("audiences") or DEFAULT_AUDIENCES)
    life_s = spec.get("expirationSeconds")
    spec["expirationSeconds"] = life_s = _DEFAULT_LIFE_S if life_s is None else life_s
    spec.setdefault("boundObjectRef", None)
    _check_life(life_s)
    metadata = account["metadata"]
    bound = _bound_objects(server, spec["boundObjectRef"], metadata["namespace"], metadata["name"])
    token = tokens.issue(account, TokenTerms(spec["audiences"], life_s, bound))
    own = {"name": metadata["name"], "namespace": metadata["namespace"], "creationTimestamp": rfc3339(now_ns)}
    status = {"token": token, "expirationTimestamp": rfc3339(now_ns + life_s * NANOSECONDS)}
    return {**token_request, "metadata": token_request["metadata"] | own, "spec": spec, "status": status}


def _check_name(reference: str | None, account: str) -> None:
    if reference and reference != account:
        text = "must match the service account name if specified"
        raise _invalid([field.invalid("metadata.name", reference, text)], account)


def _check_life(life_s: int) -> None:
    field_path = "spec.expirationSeconds"
    if life_s < _MIN_LIFE_S:
        raise _invalid([field.invalid(field_path, life_s, "may not specify a duration less than 10 minutes")])
    if life_s > _MAX_LIFE_S:
        raise _invalid([field.invalid(field_path, life_s, "may not specify a duration larger than 2^32 seconds")])


def _invalid(errors: list[FieldError], name: str = "") -> StatusError:
    return field.invalid_object(group=_GROUP, kind="TokenRequest", name=name, errors=errors)


def _bound_objects(server: ServerContext, reference: Any, namespace: str, account: str) -> dict[str, Object]:
    """The object of `boundObjectRef` by `pod`, `secret` or `node`, with the node of a pod; empty for None.

    Raises StatusError 400 for another kind or a pod of another account, 404, 409 for another uid.
    """
    if reference is None:
        return {}
    kind, name = reference.get("kind", ""), reference.get("name", "")
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    resource = _BOUND_KINDS.get(kind)
    if group or resource is None:
        text = f"cannot bind token to object of type {group}/{version}, Kind={kind}"
        raise http_errors.bad_request(text)
    bound_object = server.objects.get(resource, "" if resource == "nodes" else namespace, name).decode()
    if resource == "pods" and (bound_object["spec"].get("serviceAccountName") or "default") != account:
        text = f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        raise http_errors.bad_request(text)
    _check_uid(reference, bound_object)
    bound = {kind.lower(): bound_object}
    node = server.objects.find("nodes", "", bound_object["spec"].get("nodeName", "")) if resource == "pods" else None
    return bound | ({"node": node.decode()} if node is not None else {})


def _check_uid(reference: Object, bound: Object) -> None:
    """Raise StatusError 409 if the bound object is not the one with the uid of the reference."""
    uid, kind, name = reference.get("uid", ""), reference.get("kind", ""), reference.get("name", "")
    if not uid or uid == bound["metadata"]["uid"]:
        return
    why = (
        f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
    text = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
    raise StatusError(text, code=409, reason="Conflict", details={"name": name, "kind": kind})
