"""Rules of OpenAPI documents that hold for all kinds."""

import re

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.openapi import openapi
from podscaler.api.openapi.openapi import CreateOnly
from podscaler.api.text import json_text

REVIEW = CreateOnly(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    "authorization/v1.SelfSubjectAccessReview",
)
METRICS = openapi.metric_documents(
    {"custom.metrics.k8s.io": ("v1beta2", "v1beta1"), "external.metrics.k8s.io": ("v1beta1",)},
    {"custom.metrics.k8s.io": "MetricValueList", "external.metrics.k8s.io": "ExternalMetricValueList"},
)
DOCUMENTS = {path: make() for path, make in (openapi.documents(catalog.RESOURCES, [REVIEW]) | METRICS).items()}


METHODS = ("get", "post")


def operations(document):
    """Every operation of a document, with its path and method."""
    return [
        (path, method, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method != "parameters"
    ]


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_reference_leads_somewhere(path):
    """No `$ref` points to a schema that the document lacks."""
    text = json_text.encode(DOCUMENTS[path]).decode()
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert referred <= set(DOCUMENTS[path]["components"]["schemas"])


@pytest.mark.parametrize("path", DOCUMENTS)
def test_operations_have_names_of_their_own(path):
    """An operationId stands once, so that clients can be generated."""
    names = [operation["operationId"] for _, _, operation in operations(DOCUMENTS[path])]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", DOCUMENTS)
def test_path_parameters_are_declared(path):
    """Each variable of a path has its parameter, and no other is there."""
    for name, item in DOCUMENTS[path]["paths"].items():
        declared = [parameter["name"] for parameter in item.get("parameters", []) if parameter["in"] == "path"]
        assert sorted(re.findall(r"{(\w+)}", name)) == sorted(declared), name


def test_every_patch_lets_clients_leave_validation_to_the_server():
    """kubectl looks for the kind and for `fieldValidation` at the patch of an object."""
    patches = [o for document in DOCUMENTS.values() for _, method, o in operations(document) if method == "patch"]
    assert patches
    for operation in patches:
        assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]
        assert set(operation["x-kubernetes-group-version-kind"]) == {"group", "kind", "version"}


@pytest.mark.parametrize(
    ("subresource", "options", "query"),
    [
        ("attach", "PodAttachOptions", ["container", "stderr", "stdin", "stdout", "tty"]),
        ("exec", "PodExecOptions", ["command", "container", "stderr", "stdin", "stdout", "tty"]),
        ("portforward", "PodPortForwardOptions", ["ports"]),
    ],
)
def test_sessions_of_pods_are_connections(subresource, options, query):
    """By GET and POST, with what upstream's documents say of them."""
    path = DOCUMENTS["api/v1"]["paths"][f"/api/v1/namespaces/{{namespace}}/pods/{{name}}/{subresource}"]
    assert [each["name"] for each in path["parameters"] if each["in"] == "query"] == query
    kind = {"group": "", "kind": options, "version": "v1"}
    found = [
        (path[method]["x-kubernetes-action"], path[method]["x-kubernetes-group-version-kind"]) for method in METHODS
    ]
    assert found == [("connect", kind)] * 2


def test_metrics_apis_can_only_be_asked():
    """Values of objects, of a namespace, and of what is outside, each by its path."""
    asked = {
        path: name
        for document in METRICS
        for path, method, operation in operations(DOCUMENTS[document])
        if "{" in path and method == "get"
        for name in [operation["operationId"]]
    }
    custom = "/apis/custom.metrics.k8s.io"
    one, within = "{resource}/{name}/{subresource}", "namespaces/{namespace}"
    assert asked == {
        f"{custom}/{version}/{path}": f"listCustomMetrics{version.capitalize()}{name}"
        for version in ("v1beta1", "v1beta2")
        for path, name in (
            (one, "Metric"),
            (f"{within}/{one}", "NamespacedMetric"),
            (f"{within}/metrics/{{name}}", "NamespaceMetric"),
        )
    } | {f"/apis/external.metrics.k8s.io/v1beta1/{within}/{{resource}}": "listExternalMetricsV1beta1NamespacedMetric"}


def test_what_is_computed_can_only_be_read():
    """Metrics have no write and no watch paths."""
    methods = {method for _, method, _ in operations(DOCUMENTS["apis/metrics.k8s.io/v1beta1"])}
    assert methods == {"get"}


def test_reviews_can_only_be_created():
    """A question has one path and one method."""
    document = DOCUMENTS["apis/authorization.k8s.io/v1"]
    found = [(path, method) for path, method, _ in operations(document) if not path.endswith("/v1/")]
    assert found == [("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "post")]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("apis/apps/v1", {"readAppsV1NamespacedDeploymentScale", "patchAppsV1NamespacedDeploymentStatus"}),
        (
            "api/v1",
            {"readCoreV1NamespacedPodLog", "createCoreV1NamespacedPodBinding", "replaceCoreV1NamespaceFinalize"},
        ),
        ("apis/coordination.k8s.io/v1", {"createCoordinationV1NamespacedLease"}),
    ],
)
def test_operations_are_named_as_upstream_names_them(path, names):
    """Generated clients call operations by these names."""
    assert names <= {operation["operationId"] for _, _, operation in operations(DOCUMENTS[path])}


def test_an_unknown_group_version_has_an_almost_empty_document():
    """Nothing is served there but the list of its resources."""
    assert list(openapi.document("example.com/v1", catalog.RESOURCES)["paths"]) == ["/apis/example.com/v1/"]
