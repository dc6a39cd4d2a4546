"""Parses request paths into API group, version, namespace, resource, name and subresource.

`apiserver.dispatch` calls it for every request. The path forms are

    /api/v1/...            /apis/GROUP/VERSION/...
    [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]
    watch/...              the deprecated form of ?watch=true

/apis/apps/v1/namespaces/default/deployments/web/scale becomes ResourcePath("apps", "v1", namespace="default",
resource="deployments", name="web", subresource="scale"). A new part of paths: a field of `ResourcePath`, which
`_parse_resource` sets.

Source: the request paths of the Kubernetes API conventions. A namespace's own path is `namespaces/NS`, also with
`status` or `finalize`, which therefore are no resources.
"""

from dataclasses import dataclass
from urllib.parse import unquote

NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
"""The segments after `namespaces/NS` that are subresources of the namespace; others are plurals of resources in it."""


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A path below a group and version; empty texts for parts that it does not have.

    Attributes:
        resource: the plural.
        is_deprecated_watch: whether the path has the deprecated form `watch/...`.
        has_further_segments: whether further segments follow the subresource, as in paths of `proxy` only.
    """

    group: str
    version: str
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    is_deprecated_watch: bool = False
    has_further_segments: bool = False


def split(raw_path: str) -> tuple[str, str]:
    """Decoded path and raw query of a request target; escaped slashes count as slashes (as in kube-apiserver)."""
    path, _, query = raw_path.partition("?")
    return (unquote(path) if "%" in path else path), query


def parse(path: str) -> ResourcePath | None:
    """The parts of a decoded path, None if it is not below a group and version."""
    match path.strip("/").split("/"):
        case ["api", version, first_segment, *later_segments]:
            return _parse_resource("", version, [first_segment, *later_segments])
        case ["apis", group, version, first_segment, *later_segments]:
            return _parse_resource(group, version, [first_segment, *later_segments])
        case _:
            return None


def group_version(path: str) -> tuple[str, str] | None:
    """Group and version of the decoded path of a resource list or of an OpenAPI v3 document; None for other paths."""
    segments = path.strip("/").split("/")
    if segments[:2] == ["openapi", "v3"]:
        segments = segments[2:]
    match segments:
        case ["apis", group, version]:
            return group, version
        case ["api", version]:
            return "", version
        case _:
            return None


def is_watch_without_resource(path: str) -> bool:
    """Whether a decoded path ends at `watch`, without a resource: kube-apiserver's RequestInfo fails for it."""
    match path.rstrip("/").split("/"):
        case ["", "api", _, "watch"] | ["", "apis", _, _, "watch"]:
            return True
        case _:
            return False


def _parse_resource(group: str, version: str, segments: list[str]) -> ResourcePath:
    """The resource path of what follows the version: `[watch/][namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]`."""
    is_deprecated_watch = segments[0] == "watch" and len(segments) > 1
    if is_deprecated_watch:
        segments = segments[1:]
    namespace = ""
    if segments[0] == "namespaces" and len(segments) > 2 and segments[2] not in NAMESPACE_SUBRESOURCES:
        _, namespace, *segments = segments
    resource, name, subresource, *_ = [*segments, "", ""]  # missing parts are empty
    return ResourcePath(
        group,
        version,
        namespace=namespace,
        resource=resource,
        name=name,
        subresource=subresource,
        is_deprecated_watch=is_deprecated_watch,
        has_further_segments=len(segments) > 3,
    )
