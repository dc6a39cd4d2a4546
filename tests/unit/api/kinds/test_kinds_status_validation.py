"""Statuses that upstream judges: conditions of every API, load balancers of Services, phases of namespaces."""

from typing import Any

import pytest

from podscaler.api.kinds.core import namespace
from podscaler.api.kinds.networking import service_validation
from podscaler.api.resource import status_subresource

GOOD = {"type": "A", "status": "True", "reason": "Ok", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([GOOD, GOOD | {"type": "B"}], [], id="good"),
        pytest.param(
            [{}],
            [
                "c[0].type: Required value: is required",
                "c[0].status: Required value",
                "c[0].lastTransitionTime: Required value",
                "c[0].reason: Required value",
            ],
            id="empty",
        ),
        pytest.param([GOOD, GOOD], ['c[1]: Duplicate value: "A"'], id="twice"),
        pytest.param(
            [GOOD | {"status": "Yes", "observedGeneration": -1}],
            [
                'c[0].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"',
                "c[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
            ],
            id="values that there are not",
        ),
        pytest.param(
            [GOOD | {"reason": "x" * 1025, "message": "m" * 32769}],
            [
                "c[0].reason: Too long: may not be more than 1024 bytes",
                "c[0].message: Too long: may not be more than 32768 bytes",
            ],
            id="long",
        ),
    ],
)
def test_conditions(conditions: list[dict[str, Any]], expected: list[str]) -> None:
    """Conditions say what they are of, since when and why."""
    assert [str(each) for each in status_subresource.validate_conditions(conditions, "c")] == expected


L = "status.loadBalancer.ingress"


@pytest.mark.parametrize(
    ("kind", "listed", "expected"),
    [
        pytest.param("LoadBalancer", [{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "h"}], [], id="good"),
        pytest.param("ClusterIP", [], [], id="none"),
        pytest.param(
            "ClusterIP",
            [{"ip": "x"}],
            [f"{L}: Forbidden: may only be used when `spec.type` is 'LoadBalancer'"],
            id="of another type",
        ),
        pytest.param(
            "LoadBalancer",
            [{"ip": "x"}],
            [f'{L}[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
            id="no address",
        ),
        pytest.param(
            "LoadBalancer",
            [{"hostname": "1.2.3.4"}],
            [f'{L}[0].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
            id="an address for a name",
        ),
        pytest.param(
            "LoadBalancer",
            [{"ip": "1.2.3.4", "ipMode": "X"}, {"hostname": "h", "ipMode": "VIP"}],
            [
                f'{L}[0].ipMode: Unsupported value: "X": supported values: "Proxy", "VIP"',
                f"{L}[1].ipMode: Forbidden: may not be specified when `ip` is not set",
            ],
            id="modes",
        ),
    ],
)
def test_load_balancers(kind: str, listed: list[dict[str, Any]], expected: list[str]) -> None:
    """Only Services of one type have a load balancer, at addresses that can be."""
    service = {"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": listed}}}
    assert [str(each) for each in service_validation.validate_status(service, None)] == expected


@pytest.mark.parametrize(
    ("phase", "going", "expected"),
    [
        pytest.param("Active", False, [], id="lives"),
        pytest.param("Terminating", True, [], id="goes"),
        pytest.param(
            "Terminating",
            False,
            ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
            id="lives and is said to go",
        ),
        pytest.param(
            "Active",
            True,
            ["status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"],
            id="goes and is said to live",
        ),
    ],
)
def test_phases_of_namespaces(*, phase: str, going: bool, expected: list[str]) -> None:
    """A namespace goes when it is deleted, and not before."""
    metadata = {"name": "n"} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {})
    new = {"metadata": metadata, "status": {"phase": phase}}
    assert [str(each) for each in namespace.validate_status(new, {"metadata": metadata})] == expected
