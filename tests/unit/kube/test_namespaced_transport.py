"""A transport that narrows lists of all namespaces to one."""

import pytest

from podscaler.kube.client.connect import NamespacedTransport
from podscaler.kube.transport.transport import Request
from podscaler.testing.transport import ScriptedTransport, json_answer


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("GET", "/api/v1/pods", "/api/v1/namespaces/a%20b/pods"),
        (
            "GET",
            "/apis/autoscaling/v2/horizontalpodautoscalers",
            "/apis/autoscaling/v2/namespaces/a%20b/horizontalpodautoscalers",
        ),
        ("GET", "/api/v1/namespaces", "/api/v1/namespaces"),
        ("GET", "/api/v1/nodes", "/api/v1/nodes"),
        ("GET", "/api/v1", "/api/v1"),
        ("GET", "/apis/apps/v1", "/apis/apps/v1"),
        ("GET", "/apis/apps/v1/namespaces/x/deployments", "/apis/apps/v1/namespaces/x/deployments"),
        ("POST", "/apis/authorization.k8s.io/v1/reviews", "/apis/authorization.k8s.io/v1/reviews"),
    ],
)
async def test_paths(method: str, path: str, sent: str) -> None:
    """Lists of all namespaces become lists of one; discovery, single objects, nodes and writes stay."""
    transport = ScriptedTransport()
    transport.on(method, sent, json_answer({}))
    response = await NamespacedTransport(transport, "a b").request(Request(method, path))
    assert (response.status, [each.path for each in transport.requests]) == (200, [sent])
