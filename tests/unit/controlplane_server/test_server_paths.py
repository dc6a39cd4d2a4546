"""Paths and routes: what a path names, whether it exists, and with which methods."""

import pytest

from podscaler.api.kinds import catalog
from podscaler.controlplane.apiserver.http import request_paths
from podscaler.controlplane.apiserver.http.request_paths import ResourcePath
from podscaler.controlplane.apiserver.http.routes import Routes

ROUTES = Routes(catalog.RESOURCES)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/api/v1/pods", ResourcePath("", "v1", "", "pods"), id="cluster-wide list"),
        pytest.param("/api/v1/namespaces/n/pods", ResourcePath("", "v1", "n", "pods"), id="collection"),
        pytest.param("/api/v1/namespaces/n/pods/", ResourcePath("", "v1", "n", "pods"), id="trailing slash"),
        pytest.param("/api/v1/namespaces/n/pods/p", ResourcePath("", "v1", "n", "pods", "p"), id="object"),
        pytest.param(
            "/api/v1/namespaces/n/pods/p/log", ResourcePath("", "v1", "n", "pods", "p", "log"), id="subresource"
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/n/deployments/d/scale",
            ResourcePath("apps", "v1", "n", "deployments", "d", "scale"),
            id="subresource of a group",
        ),
        pytest.param(
            "/api/v1/namespaces/n/pods/p/log/more",
            ResourcePath("", "v1", "n", "pods", "p", "log", has_further_segments=True),
            id="too many parts",
        ),
        pytest.param("/api/v1/namespaces", ResourcePath("", "v1", "", "namespaces"), id="namespaces"),
        pytest.param("/api/v1/namespaces/n", ResourcePath("", "v1", "", "namespaces", "n"), id="a namespace"),
        pytest.param(
            "/api/v1/namespaces/n/status",
            ResourcePath("", "v1", "", "namespaces", "n", "status"),
            id="a namespace's status",
        ),
        pytest.param(
            "/api/v1/namespaces/n/finalize",
            ResourcePath("", "v1", "", "namespaces", "n", "finalize"),
            id="a namespace's finalize",
        ),
        pytest.param("/api/v1/nodes/x", ResourcePath("", "v1", "", "nodes", "x"), id="cluster-scoped object"),
        pytest.param(
            "/api/v1/watch/namespaces/n/pods",
            ResourcePath("", "v1", "n", "pods", is_deprecated_watch=True),
            id="old watch",
        ),
        pytest.param(
            "/api/v1/watch/namespaces/n/pods/p",
            ResourcePath("", "v1", "n", "pods", "p", is_deprecated_watch=True),
            id="old watch of an object",
        ),
        pytest.param("/api/v1/watch", ResourcePath("", "v1", "", "watch"), id="a resource called watch"),
        pytest.param("/", None, id="root"),
        pytest.param("/api", None, id="core versions"),
        pytest.param("/api/v1", None, id="core resources"),
        pytest.param("/apis/apps/v1", None, id="a group's resources"),
        pytest.param("/healthz/ping", None, id="health"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_parse(path: str, expected: ResourcePath | None) -> None:
    """A path names what the API conventions say, or no resource at all."""
    assert request_paths.parse(path) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("/api/v1/pods?watch=1&a=%2F", ("/api/v1/pods", "watch=1&a=%2F"), id="the query stays encoded"),
        pytest.param("/a%25b/c%2Fd", ("/a%b/c/d", ""), id="the path is decoded, slashes too"),
    ],
)
def test_split(raw: str, expected: tuple[str, str]) -> None:
    """A request target is a decoded path and a raw query."""
    assert request_paths.split(raw) == expected


@pytest.mark.parametrize(
    ("path", "is_without_resource"),
    [
        pytest.param("/api/v1/watch", True, id="core group"),
        pytest.param("/apis/apps/v1/watch/", True, id="named group"),
        pytest.param("/apis/apps/watch", False, id="a version with that name"),
        pytest.param("/apix/v1/watch", False, id="outside of the API"),
        pytest.param("/api/v1/watch/pods", False, id="with a resource"),
    ],
)
def test_watch_without_resource(path: str, is_without_resource: bool) -> None:
    """Only a path whose resource would stand where `watch` does is a watch without a resource."""
    assert request_paths.is_watch_without_resource(path) is is_without_resource


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        pytest.param("/api/v1/pods", {"GET"}, id="a cluster-wide list is read-only"),
        pytest.param("/api/v1/pods/p", set(), id="no object without its namespace"),
        pytest.param("/api/v1/namespaces/n/pods", {"GET", "POST", "DELETE"}, id="collection"),
        pytest.param("/api/v1/namespaces/n/pods/p", {"GET", "PUT", "PATCH", "DELETE"}, id="object"),
        pytest.param("/api/v1/namespaces/n/pods/p/status", {"GET", "PUT", "PATCH"}, id="status"),
        pytest.param("/api/v1/namespaces/n/pods/p/log", {"GET"}, id="log"),
        pytest.param("/api/v1/namespaces/n/pods/p/binding", {"POST"}, id="binding"),
        pytest.param("/api/v1/namespaces/n/pods/p/scale", set(), id="pods have no scale"),
        pytest.param("/api/v1/namespaces/n/pods/p/log/x", set(), id="nothing behind a subresource"),
        pytest.param("/apis/apps/v1/namespaces/n/deployments/d/scale", {"GET", "PUT", "PATCH"}, id="scale"),
        pytest.param("/api/v1/namespaces", {"GET", "POST"}, id="namespaces are not deleted together"),
        pytest.param("/api/v1/namespaces/n", {"GET", "PUT", "PATCH", "DELETE"}, id="a namespace"),
        pytest.param("/api/v1/namespaces/n/finalize", {"PUT"}, id="finalize"),
        pytest.param("/api/v1/namespaces/n/nodes", set(), id="nodes are in no namespace"),
        pytest.param("/api/v1/watch/namespaces/n/pods", {"GET"}, id="old watch"),
        pytest.param("/api/v1/watch/namespaces/n/pods/p/log", set(), id="no watch of a subresource"),
        pytest.param("/apis/metrics.k8s.io/v1beta1/namespaces/n/pods", {"GET"}, id="computed objects are read-only"),
        pytest.param("/apis/metrics.k8s.io/v1beta1/watch/nodes", set(), id="computed objects are not watched"),
    ],
)
def test_methods(path: str, methods: set[str]) -> None:
    """Each path has the methods that its record and form imply, or does not exist."""
    target = request_paths.parse(path)
    assert target is not None
    served = ROUTES.find(target)
    assert served is not None
    assert served.methods(target) == methods


def test_what_is_not_served() -> None:
    """Unknown groups, versions and plurals lead nowhere."""
    unknown = ("/apis/nope/v1/pods", "/apis/apps/v9/deployments", "/api/v1/nopes")
    assert [ROUTES.find(target) for path in unknown if (target := request_paths.parse(path))] == [None, None, None]


def test_verbs() -> None:
    """Discovery's verbs follow from the methods."""
    target = request_paths.parse("/api/v1/namespaces")
    assert target is not None
    served = ROUTES.find(target)
    assert served is not None
    assert served.verbs == ("create", "delete", "get", "list", "patch", "update", "watch")
