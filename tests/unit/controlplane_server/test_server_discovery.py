"""Discovery documents: what follows from a few records."""

from podscaler.api.kinds.apps import deployment
from podscaler.api.kinds.autoscaling import hpa
from podscaler.api.kinds.core import metrics, namespace
from podscaler.controlplane.apiserver.discovery.discovery import DiscoveryDocuments, storage_version_hash
from podscaler.controlplane.apiserver.handlers.reviews import REVIEWS
from podscaler.controlplane.apiserver.http.routes import Routes

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
ROUTES = Routes([namespace.RESOURCE, deployment.RESOURCE, hpa.RESOURCE, metrics.NODE_METRICS])
DISCOVERY = DiscoveryDocuments(ROUTES, REVIEWS)


def test_groups_in_order() -> None:
    """Groups come in the order of their records, reviews behind them; versions preferred first."""
    found = {group: DISCOVERY.versions(group) for group in DISCOVERY.groups}
    assert found == {
        "apps": ["v1"],
        "autoscaling": ["v2", "v1"],
        "metrics.k8s.io": ["v1", "v1beta1"],
        "authentication.k8s.io": ["v1"],
        "authorization.k8s.io": ["v1"],
    }


def test_group() -> None:
    """A group has its versions, and which one is preferred."""
    versions = [{"groupVersion": f"autoscaling/{version}", "version": version} for version in ("v2", "v1")]
    assert DISCOVERY.group("autoscaling") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "autoscaling",
        "versions": versions,
        "preferredVersion": versions[0],
    }


def test_resources_of_a_group() -> None:
    """A resource is told with its verbs and names, its subresources behind it."""
    assert DISCOVERY.resource_list("apps", "v1") == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "apps/v1",
        "resources": [
            {
                "name": "deployments",
                "singularName": "deployment",
                "namespaced": True,
                "kind": "Deployment",
                "verbs": ALL_VERBS,
                "shortNames": ("deploy",),
                "categories": ("all",),
                "storageVersionHash": storage_version_hash("apps/v1/Deployment"),
            },
            {
                "name": "deployments/scale",
                "singularName": "",
                "namespaced": True,
                "group": "autoscaling",
                "version": "v1",
                "kind": "Scale",
                "verbs": ("get", "patch", "update"),
            },
            {
                "name": "deployments/status",
                "singularName": "",
                "namespaced": True,
                "kind": "Deployment",
                "verbs": ("get", "patch", "update"),
            },
        ],
    }


def test_computed_resources_cannot_be_written() -> None:
    """What is not stored is told with the verbs that it has."""
    [nodes] = DISCOVERY.resource_list("metrics.k8s.io", "v1beta1")["resources"]
    assert (nodes["verbs"], "storageVersionHash" in nodes) == (("get", "list"), False)


def test_aggregated_core() -> None:
    """The aggregated form of the core group has no group name, and scopes in words."""
    [group] = DISCOVERY.aggregated(core=True)["items"]
    [version] = group["versions"]
    [resource] = version["resources"]
    assert (group["metadata"], version["version"], version["freshness"]) == ({}, "v1", "Current")
    assert (resource["resource"], resource["scope"], [part["subresource"] for part in resource["subresources"]]) == (
        "namespaces",
        "Cluster",
        ["finalize", "status"],
    )


def test_a_new_record_is_served_at_once() -> None:
    """Adding a record changes what is told, and says so."""
    routes = Routes([namespace.RESOURCE])
    before = routes.generation
    routes.add(hpa.RESOURCE)
    assert (routes.generation, DiscoveryDocuments(routes, ()).groups) == (before + 1, ["autoscaling"])


def test_storage_version_hash() -> None:
    """The hash is the one that a real API server gives for the same stored version."""
    assert storage_version_hash("autoscaling/v2/HorizontalPodAutoscaler") == "qwQve8ut294="
