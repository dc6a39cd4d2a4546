"""What a Service asks of its traffic, and whether it can have it."""

import pytest

from podscaler.api.kinds.networking import service_validation
from podscaler.api.resource.resources import Object

PLAIN: Object = {"type": "ClusterIP", "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "selector": {"a": "b"}}


@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        pytest.param({"internalTrafficPolicy": "Local"}, [], id="within the node"),
        pytest.param(
            {"externalTrafficPolicy": "Local"},
            ['spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services'],
            id="a policy for traffic that cannot come",
        ),
        pytest.param({"externalTrafficPolicy": "Local", "externalIPs": ["10.1.1.1"]}, [], id="an address outside"),
        pytest.param(
            {"type": "NodePort", "externalTrafficPolicy": "X"},
            ['spec.externalTrafficPolicy: Unsupported value: "X": supported values: "Cluster", "Local"'],
            id="no policy",
        ),
    ],
)
def test_policies(fields: Object, faults: list[str]) -> None:
    """They are of the known ones, and fit how the Service is reached."""
    assert [str(fault) for fault in service_validation.traffic_errors({**PLAIN, **fields})] == faults


@pytest.mark.parametrize(
    ("number", "is_taken"),
    [(29_999, False), (30_000, True), (32_767, True), (32_768, False)],
)
def test_node_ports_are_of_a_range(number: int, is_taken: bool) -> None:
    """Both ends belong to it; a port that the Service has already is not judged again."""
    spec = {**PLAIN, "type": "NodePort", "ports": [{"port": 80, "nodePort": number}]}
    assert (service_validation.allocation_errors(spec, None) == []) is is_taken
    assert service_validation.allocation_errors(spec, spec) == []


def test_only_services_without_address_and_selector_name_the_other_family() -> None:
    """The cluster has IPv4."""
    both = {**PLAIN, "ipFamilies": ["IPv4", "IPv6"]}
    headless = {"type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"], "ipFamilies": ["IPv4", "IPv6"]}
    assert [str(fault) for fault in service_validation.allocation_errors(both, None)] == [
        'spec.ipFamilies[1]: Invalid value: "IPv6": not configured on this cluster'
    ]
    assert service_validation.allocation_errors(headless, None) == []
