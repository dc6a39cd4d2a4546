"""Handles POST `serviceaccounts/NAME/token`: issues a token of a service account (`kubectl create token`).

`dispatch` calls it; `auth.account_tokens` signs the token. The response with the token is never stored or logged.

A new kind of bound object: a line in `_BOUND_KINDS`.

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
_DEFAULT_LIFETIME_S = 3600
_LIFETIME_MIN_S = 600
_LIFETIME_MAX_S = 1 << 32
_BOUND_KINDS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
"""The kinds of objects that a token can be bound to, and their `Resource.key`."""


async def create(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The response with a TokenRequest and its new token.

    Raises StatusError 400, 404 (the account or the bound object), 408, 409 (another uid), 413, 415, 422.
    """
    tokens = server.parts.accounts
    if tokens is None:
        raise http_errors.no_such_path()
    options = query_options.write_options(request.query, "CreateOptions")
    received = await request.receive(TOKEN_REQUEST, server.kinds, options)
    token_request = received.obj
    object_preparation.set_namespace(token_request, request.path.namespace)
    _check_name(token_request["metadata"].get("name"), request.path.name)
    account = server.objects.get("serviceaccounts", request.path.namespace, request.path.name).decode()
    issued = _issue(server, tokens, token_request, account)
    return await responses.encode_object(issued, request.form, status=201)


def _issue(server: ServerContext, tokens: AccountTokens, token_request: Object, account: Object) -> Object:
    """The TokenRequest with defaults and with the token in its status. Raises StatusError 400, 404, 409, 422."""
    now_ns = server.clock.now_ns()
    spec: Object = dict(token_request.get("spec") or {})
    spec["audiences"] = list(spec.get("audiences") or DEFAULT_AUDIENCES)
    lifetime_s = spec.get("expirationSeconds")
    spec["expirationSeconds"] = lifetime_s = _DEFAULT_LIFETIME_S if lifetime_s is None else lifetime_s
    spec.setdefault("boundObjectRef", None)
    _check_lifetime(lifetime_s)
    namespace, account_name = account["metadata"]["namespace"], account["metadata"]["name"]
    bound_objects = _bound_objects(server, spec["boundObjectRef"], namespace, account_name)
    token = tokens.issue(account, TokenTerms(spec["audiences"], lifetime_s, bound_objects))
    own_metadata = {"name": account_name, "namespace": namespace, "creationTimestamp": rfc3339(now_ns)}
    metadata = token_request["metadata"] | own_metadata
    status = {"token": token, "expirationTimestamp": rfc3339(now_ns + lifetime_s * NANOSECONDS)}
    return {**token_request, "metadata": metadata, "spec": spec, "status": status}


def _check_name(name: str | None, account_name: str) -> None:
    """Check that a TokenRequest has no name or that of its account. Raises StatusError 422 otherwise."""
    if name and name != account_name:
        message = "must match the service account name if specified"
        raise _invalid_error([field.invalid("metadata.name", name, message)], account_name)


def _check_lifetime(lifetime_s: int) -> None:
    """Check the lifetime of a token. Raises StatusError 422 if it is too short or too long."""
    field_path = "spec.expirationSeconds"
    if lifetime_s < _LIFETIME_MIN_S:
        raise _invalid_error([field.invalid(field_path, lifetime_s, "may not specify a duration less than 10 minutes")])
    if lifetime_s > _LIFETIME_MAX_S:
        raise _invalid_error(
            [field.invalid(field_path, lifetime_s, "may not specify a duration larger than 2^32 seconds")]
        )


def _invalid_error(errors: list[FieldError], name: str = "") -> StatusError:
    """The error 422 of a TokenRequest; `name` is that in the message."""
    return field.invalid_object(group=_GROUP, kind="TokenRequest", name=name, errors=errors)


def _bound_objects(server: ServerContext, reference: Any, namespace: str, account_name: str) -> dict[str, Object]:
    """The object of `boundObjectRef` by `pod`, `secret` or `node`, with the node of a pod; empty for None.

    Raises StatusError 400 for another kind or a pod of another account, 404, 409 for another uid.
    """
    if reference is None:
        return {}
    kind, name = reference.get("kind", ""), reference.get("name", "")
    group, _, version = reference.get("apiVersion", "").rpartition("/")
    resource_key = _BOUND_KINDS.get(kind)
    if group or resource_key is None:
        message = f"cannot bind token to object of type {group}/{version}, Kind={kind}"
        raise http_errors.bad_request(message)
    bound_object = server.objects.get(resource_key, "" if resource_key == "nodes" else namespace, name).decode()
    is_pod = resource_key == "pods"
    if is_pod and (bound_object["spec"].get("serviceAccountName") or "default") != account_name:
        raise http_errors.bad_request(
            f'cannot bind token for serviceaccount "{account_name}" to pod running with different serviceaccount name.'
        )
    _check_uid(reference, bound_object)
    bound_objects = {kind.lower(): bound_object}
    node = server.objects.find("nodes", "", bound_object["spec"].get("nodeName", "")) if is_pod else None
    if node is not None:
        bound_objects["node"] = node.decode()
    return bound_objects


def _check_uid(reference: Object, bound_object: Object) -> None:
    """Raise StatusError 409 if the bound object is not the one with the uid of the reference, if that has one."""
    uid, kind, name = reference.get("uid", ""), reference.get("kind", ""), reference.get("name", "")
    if not uid or uid == bound_object["metadata"]["uid"]:
        return
    problem = (
        f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        "The object might have been deleted and then recreated"
    )
    message = f'Operation cannot be fulfilled on {kind} "{name}": {problem}'
    raise StatusError(message, code=409, reason="Conflict", details={"name": name, "kind": kind})
