"""What the writer of a Service is warned of."""

from typing import Any

import pytest

from podscaler.api.kinds.networking import service


@pytest.mark.parametrize(
    ("spec", "warnings"),
    [
        pytest.param({"type": "ClusterIP", "clusterIP": "127.9.0.9"}, [], id="nothing"),
        pytest.param(
            {"type": "ClusterIP", "externalName": "a.b"},
            ['spec.externalName is ignored when spec.type is not "ExternalName"'],
            id="name of another type",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "a.b", "externalIPs": ["1.2.3.4"]},
            ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
            id="addresses of a name",
        ),
        pytest.param(
            {"type": "ClusterIP", "externalIPs": ["1.2.3.4"]},
            ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
            id="addresses from outside",
        ),
        pytest.param(
            {"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP", "externalIPs": ["1.2.3.4"]},
            [
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
            id="headless",
        ),
        pytest.param(
            {"type": "ClusterIP", "trafficDistribution": "PreferClose"},
            ['spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'],
            id="old word for a preference",
        ),
    ],
)
def test_warnings(spec: dict[str, Any], warnings: list[str]) -> None:
    """What is ignored or deprecated is told, what is heeded is not."""
    given = {"sessionAffinity": "None", **spec}
    assert service.warnings({"metadata": {}, "spec": given}, None) == warnings
