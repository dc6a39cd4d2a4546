"""The requests that are sent to both adapters, by sample configuration, and the cluster that they are about."""

from typing import Any

Object = dict[str, Any]
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta1"
NEWER = "/apis/custom.metrics.k8s.io/v1beta2"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
RESOURCE = "/apis/metrics.k8s.io/v1beta1"
DEFAULT, SHOP = f"{CUSTOM}/namespaces/default", f"{CUSTOM}/namespaces/shop"

REQUESTS: dict[str, list[str]] = {
    "custom": [
        "/apis/custom.metrics.k8s.io",
        CUSTOM,
        NEWER,
        f"{DEFAULT}/pods/web-1/http_requests_per_second",
        f"{DEFAULT}/pods/web-2/http_requests_per_second",
        f"{DEFAULT}/pods/*/http_requests_per_second",
        f"{DEFAULT}/pods/*/http_requests_per_second?labelSelector=app%3Dweb",
        f"{DEFAULT}/pods/*/http_requests_per_second?labelSelector=app%20in%20(web,other),!tier",
        f"{DEFAULT}/pods/*/http_requests_per_second?labelSelector=app%3Dnone",
        f"{DEFAULT}/pods/*/http_requests_per_second?labelSelector=%3D",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=verb%3DGET",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=verb%20in%20(GET,POST)",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=verb!%3DGET,verb",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=!missing",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=verb%20notin%20(GET)",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=verb%3D%3DGET",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=verb%3DPUT",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=verb%3E3",
        f"{DEFAULT}/pods/web-2/http_requests_per_second?metricLabelSelector=%3D%3D",
        f"{DEFAULT}/pods/web-9/http_requests_per_second",
        f"{DEFAULT}/pod/web-1/http_requests_per_second",
        f"{DEFAULT}/services/web/http_requests_per_second",
        f"{DEFAULT}/service/*/http_requests_per_second",
        f"{DEFAULT}/deployments.apps/web/http_requests_per_second",
        f"{DEFAULT}/deployments/web/http_requests_per_second",
        f"{DEFAULT}/deployments.extensions/web/http_requests_per_second",
        f"{DEFAULT}/jobs.batch/web/http_requests_per_second",
        f"{DEFAULT}/unknowns/web/http_requests_per_second",
        f"{DEFAULT}/unknowns/*/http_requests_per_second",
        f"{DEFAULT}/metrics/http_requests_per_second",
        f"{SHOP}/metrics/http_requests_per_second",
        f"{CUSTOM}/namespaces/nowhere/metrics/http_requests_per_second",
        f"{SHOP}/pods/*/http_requests_per_second",
        f"{CUSTOM}/namespaces/nowhere/pods/*/http_requests_per_second",
        f"{NEWER}/namespaces/default/pods/*/http_requests_per_second",
        f"{NEWER}/namespaces/default/pods/web-2/http_requests_per_second?metricLabelSelector=verb%3DGET",
        f"{NEWER}/namespaces/default/metrics/http_requests_per_second",
        f"{DEFAULT}/pods/*/cpu",
        f"{DEFAULT}/pods/*/network",
        f"{DEFAULT}/pods/*/depth",
        f"{SHOP}/pods/*/depth",
        f"{DEFAULT}/deployments.apps/web/depth",
        f"{DEFAULT}/metrics/depth",
        f"{CUSTOM}/nodes/node-1/node_load",
        f"{CUSTOM}/nodes/*/node_load",
        f"{CUSTOM}/nodes/*/node_load?labelSelector=zone%3Da",
        f"{CUSTOM}/node/node-2/node_load",
        f"{CUSTOM}/nodes/node-9/node_load",
        f"{DEFAULT}/nodes/node-1/node_load",
        f"{CUSTOM}/pods/web-1/http_requests_per_second",
        f"{DEFAULT}/pods/*/odd_value",
        f"{DEFAULT}/pods/web-1/odd_value",
        f"{SHOP}/pods/web-1/odd_value",
        f"{DEFAULT}/deployments.apps/*/odd_value",
        f"{DEFAULT}/pods/*/by_values",
        f"{DEFAULT}/pods/web-3/by_values",
        f"{DEFAULT}/pods/*/top",
        f"{DEFAULT}/pods/web-1/top",
        f"{DEFAULT}/pods/*/counted",
        f"{DEFAULT}/pods/web-1/counted",
        f"{DEFAULT}/pods/*/wrong_query",
        f"{DEFAULT}/pods/*/wrong_field",
        f"{DEFAULT}/pods/web-1/wrong_field",
        f"{DEFAULT}/pods/web-1/a_scalar",
        f"{DEFAULT}/pods/web-1/ratio",
        f"{DEFAULT}/pods/web-3/ratio",
        f"{DEFAULT}/pods/*/unknown_metric",
        f"{DEFAULT}/pods/web-1/unknown_metric",
        f"{DEFAULT}/metrics/unknown_metric",
    ],
    "external": [
        "/apis/external.metrics.k8s.io",
        EXTERNAL,
        f"{EXTERNAL}/namespaces/default/queue_consumer_lag",
        f"{EXTERNAL}/namespaces/default/queue_consumer_lag?labelSelector=name%3Dorders",
        f"{EXTERNAL}/namespaces/default/queue_consumer_lag?labelSelector=name%20in%20(orders,mail)",
        f"{EXTERNAL}/namespaces/default/queue_consumer_lag?labelSelector=name%3Dnone",
        f"{EXTERNAL}/namespaces/shop/queue_consumer_lag",
        f"{EXTERNAL}/namespaces/nowhere/queue_consumer_lag",
        f"{EXTERNAL}/namespaces/default/queue_messages",
        f"{EXTERNAL}/namespaces/default/queue_messages?labelSelector=tier%3Dgold",
        f"{EXTERNAL}/namespaces/shop/queue_messages?labelSelector=name%3Dmail",
        f"{EXTERNAL}/namespaces/default/queue_messages?labelSelector=tier%3E3",
        f"{EXTERNAL}/namespaces/default/queue_messages?labelSelector=%3D",
        f"{EXTERNAL}/namespaces/default/external_age",
        f"{EXTERNAL}/namespaces/shop/external_age",
        f"{EXTERNAL}/namespaces/default/a_scalar",
        f"{EXTERNAL}/namespaces/default/a_matrix",
        f"{EXTERNAL}/namespaces/default/rejected",
        f"{EXTERNAL}/namespaces/default/without_label",
        f"{EXTERNAL}/namespaces/default/unknown_metric",
        f"{EXTERNAL}/namespaces/shop/unknown_metric",
    ],
    "resource": [
        "/apis/metrics.k8s.io",
        RESOURCE,
        f"{RESOURCE}/pods",
        f"{RESOURCE}/namespaces/default/pods",
        f"{RESOURCE}/namespaces/default/pods?labelSelector=app%3Dweb",
        f"{RESOURCE}/namespaces/default/pods?fieldSelector=metadata.name%3Dweb-1",
        f"{RESOURCE}/namespaces/default/pods/web-1",
        f"{RESOURCE}/namespaces/default/pods/web-2",
        f"{RESOURCE}/namespaces/default/pods/web-9",
        f"{RESOURCE}/namespaces/nowhere/pods",
        f"{RESOURCE}/nodes",
        f"{RESOURCE}/nodes?labelSelector=zone%3Da",
        f"{RESOURCE}/nodes/node-1",
        f"{RESOURCE}/nodes/node-2",
        f"{RESOURCE}/nodes/node-9",
    ],
}


def _pod(name: str, app: str) -> Object:
    container = {"name": "app", "image": "none"}
    return {"metadata": {"name": name, "labels": {"app": app}}, "spec": {"containers": [container]}}


def _deployment(name: str) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "none"}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


OBJECTS: list[tuple[str, Object]] = [
    ("/api/v1/namespaces", {"metadata": {"name": "shop"}}),
    ("/api/v1/nodes", {"metadata": {"name": "node-1", "labels": {"zone": "a"}}}),
    ("/api/v1/nodes", {"metadata": {"name": "node-2", "labels": {"zone": "b"}}}),
    ("/api/v1/namespaces/default/pods", _pod("web-1", "web")),
    ("/api/v1/namespaces/default/pods", _pod("web-2", "web")),
    ("/api/v1/namespaces/default/pods", _pod("web-3", "other")),
    ("/api/v1/namespaces/shop/pods", _pod("web-1", "web")),
    ("/api/v1/namespaces/default/services", {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}),
    ("/apis/apps/v1/namespaces/default/deployments", _deployment("web")),
    ("/apis/apps/v1/namespaces/default/deployments", _deployment("other")),
]
"""What is created, in order: the collection and the object."""
