"""Who may do what: the one place that is asked before a request is carried out.

Called by `server.app` for every request and by the self access reviews. For now there are two kinds of users: members
of system:masters may do everything, everyone else who is known may read discovery and ask about themselves. Role-based
rules take the place of `is_allowed`, and nothing else.

Source: upstream's bootstrap roles cluster-admin, system:discovery and system:basic-user.
"""

from dataclasses import dataclass

from podscaler.controlplane.access.users import MASTERS, User
from podscaler.errors import StatusError

DISCOVERY_PATHS = ("/api", "/apis", "/healthz", "/livez", "/openapi", "/readyz", "/version")
SELF_REVIEWS = {
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
}


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a request wants to do: to a resource, or (with `path`) to a path that is none.

    Attributes:
        verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; lower-case HTTP
            methods for paths.
        resource: the plural; empty for paths.
        subresource, namespace, name: empty where there is none.
    """

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


def is_allowed(user: User, wanted: Attributes) -> bool:
    """Whether `user` may do that."""
    if MASTERS in user.groups:
        return True
    if not wanted.resource:
        return wanted.verb == "get" and _is_discovery(wanted.path)
    return wanted.verb == "create" and (wanted.group, wanted.resource) in SELF_REVIEWS


def authorize(user: User, wanted: Attributes) -> None:
    """Return if `user` may do that.

    Raises:
        StatusError: 403 in upstream's words.
    """
    if not is_allowed(user, wanted):
        raise _path_refusal(user, wanted) if not wanted.resource else _resource_refusal(user, wanted)


def _is_discovery(path: str) -> bool:
    return any(path == known or path.startswith(f"{known}/") for known in DISCOVERY_PATHS)


def _path_refusal(user: User, wanted: Attributes) -> StatusError:
    text = f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"'
    return StatusError(text, code=403, reason="Forbidden", details={})


def _resource_refusal(user: User, wanted: Attributes) -> StatusError:
    full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    subject = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    if wanted.name:
        subject += f' "{wanted.name}"'
    scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    text = (
        f'{subject} is forbidden: User "{user.name}" cannot {wanted.verb} resource "{full}" '
        f'in API group "{wanted.group}" {scope}'
    )
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    shown = {key: value for key, value in details.items() if value}
    return StatusError(text, code=403, reason="Forbidden", details=shown)
