"""Parses the path of a request into group, version, namespace, resource, name and subresource, as API servers do.

`server.app` calls it for each request; authorization and the APIs use the result.

Source: k8s.io/apiserver, the request info resolver.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from podscaler.base.errors import StatusError
from podscaler.kube.serving.delegated_access import AccessAttributes

_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A parsed request.

    Attributes:
        path: the path, unescaped.
        attributes: verb, group, version, namespace, resource, name and subresource, for authorization.
        parts: the segments of the path behind group and version, without the namespace.
        parameters: the parameters of the query; the first value of each.
    """

    path: str
    attributes: AccessAttributes
    parts: Sequence[str]
    parameters: Mapping[str, str]

    @property
    def is_resource_request(self) -> bool:
        """Whether the request is about a resource of a group and version."""
        return not self.attributes.path


def parse(method: str, path: str, query: str) -> RequestInfo:
    """The request of a path (escaped) and a query. Raises StatusError 400 for a path that is no text."""
    parameters: dict[str, str] = {}
    for name, argument in parse_qsl(query, keep_blank_values=True):
        parameters.setdefault(name, argument)
    try:
        segments = [unquote(segment, errors="strict") for segment in path.strip("/").split("/")]
    except UnicodeDecodeError as error:
        raise StatusError("the path is not UTF-8", code=400, reason="BadRequest") from error
    verb = _VERBS.get(method, method.lower())
    path_text = unquote(path, errors="replace")
    if len(segments) < 4 or segments[0] != "apis":  # shorter than /apis/GROUP/VERSION/RESOURCE
        return RequestInfo(path_text, AccessAttributes(verb, path_text), (), parameters)
    group, version, *parts = segments[1:]
    namespace, parts = _split_namespace(parts)
    resource, name, subresource = [*parts, "", "", ""][:3]
    if not name and verb == "get":
        verb = "watch" if parameters.get("watch") in ("true", "1") else "list"
    attributes = AccessAttributes(
        verb,
        group=group,
        version=version,
        namespace=namespace,
        resource=resource,
        subresource=subresource,
        name=name,
    )
    return RequestInfo(path_text, attributes, parts, parameters)


def _split_namespace(parts: list[str]) -> tuple[str, list[str]]:
    """The namespace of a resource, and the parts behind it."""
    if parts[0] != "namespaces" or len(parts) < 2:
        return "", parts
    _, namespace, *parts_within = parts
    is_namespace_itself = not parts_within or parts_within[0] in _NAMESPACE_SUBRESOURCES
    return namespace, parts if is_namespace_itself else parts_within
