"""Whether the API server is there and lets us work: asked once at the start, so that what cannot heal is said at once.

`podscaler controller` calls `check` before it begins. Later failures of the same kinds are retried.

Source: controller.md 9.
"""

from dataclasses import dataclass

import msgspec

from podscaler.errors import StatusError, UsageError
from podscaler.kube.client import Client
from podscaler.kube.transport import TransportError

TIMEOUT_S = 10.0
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Permission:
    """One thing that the controller has to be allowed to do."""

    verb: str
    group: str
    resource: str
    subresource: str = ""

    @property
    def shown(self) -> str:
        """The resource as RBAC rules write it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


NEEDED = (
    Permission("list", "autoscaling", "horizontalpodautoscalers"),
    Permission("watch", "autoscaling", "horizontalpodautoscalers"),
    Permission("update", "autoscaling", "horizontalpodautoscalers", "status"),
    Permission("list", "", "pods"),
    Permission("watch", "", "pods"),
)


class _Allowed(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Allowed


async def check(client: Client, origin: str) -> None:
    """Return if the server answers, serves autoscaling/v2, and allows what is needed.

    Args:
        client: of the server.
        origin: where its address and our credentials came from, for the sentence.

    Raises:
        UsageError: in one sentence: what failed, and what to change or grant.
    """
    try:
        path = "/apis/autoscaling/v2/horizontalpodautoscalers"
        await client.get(
            path, subject="horizontalpodautoscalers.autoscaling", query=[("limit", "1")], timeout_s=TIMEOUT_S
        )
    except StatusError as error:
        raise UsageError(_sentence(error, client.server, origin)) from error
    for permission in NEEDED:
        if not await _is_allowed(client, permission):
            raise UsageError(_refusal(permission, client.server, origin))


def _sentence(error: StatusError, server: str, origin: str) -> str:
    if isinstance(error, TransportError):
        return f"cannot reach the API server {server} ({origin}): {error.cause}"
    if error.code == 401:
        return f"the API server {server} does not accept the credentials of {origin}: {error}"
    if error.code == 403:
        return _refusal(NEEDED[0], server, origin)
    if error.code == 404:
        return f"the API server {server} ({origin}) does not serve autoscaling/v2, which needs Kubernetes 1.23 or newer"
    return f"the API server {server} ({origin}) cannot list horizontalpodautoscalers: {error}"


def _refusal(permission: Permission, server: str, origin: str) -> str:
    grant = (
        f'grant the verb "{permission.verb}" on "{permission.shown}" of apiGroup "{permission.group}" in a ClusterRole'
    )
    action = f"{permission.verb} {permission.shown}"
    return f"the API server {server} does not allow the user of {origin} to {action}: {grant}"


async def _is_allowed(client: Client, permission: Permission) -> bool:
    """Whether the server says so; a server that cannot say is taken to allow it."""
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
    }
    review = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": attributes},
    }
    try:
        answer = await client.post(REVIEWS, msgspec.json.encode(review), subject="selfsubjectaccessreviews")
        return msgspec.json.decode(answer, type=_Review).status.allowed
    except (StatusError, msgspec.DecodeError):
        return True
