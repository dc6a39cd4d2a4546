"""What an update of a Service keeps and drops."""

from typing import Any

import pytest

from podscaler.api.kinds.networking import service_update

OLD: dict[str, Any] = {
    "type": "NodePort",
    "clusterIP": "127.9.0.9",
    "clusterIPs": ["127.9.0.9"],
    "ipFamilies": ["IPv4"],
    "ports": [{"name": "web", "port": 80, "nodePort": 30001}, {"name": "admin", "port": 81, "nodePort": 30002}],
    "externalTrafficPolicy": "Cluster",
}


def updated(**changes: Any) -> dict[str, Any]:
    """The changed fields as they are after an update of OLD."""
    new = {**OLD, "ports": [{**port} for port in OLD["ports"]], **changes}
    service_update.reconcile(new, OLD)
    return new


@pytest.mark.parametrize(
    ("changes", "settled"),
    [
        pytest.param({"clusterIP": "", "clusterIPs": []}, ("127.9.0.9", ["127.9.0.9"]), id="not named: kept"),
        pytest.param({"clusterIP": "127.9.0.8"}, ("127.9.0.8", ["127.9.0.8"]), id="changed: the list follows"),
        pytest.param(
            {"clusterIP": "127.9.0.8", "clusterIPs": ["127.9.0.7"]},
            ("127.9.0.8", ["127.9.0.7"]),
            id="both changed: as they are",
        ),
        pytest.param({"type": "ExternalName"}, (None, None), id="no use for it: dropped"),
        pytest.param(
            {"type": "ExternalName", "clusterIPs": ["127.9.0.7"]},
            ("127.9.0.9", ["127.9.0.7"]),
            id="no use, but changed: left for validation",
        ),
    ],
)
def test_addresses(changes: dict[str, Any], settled: tuple[Any, Any]) -> None:
    """`clusterIP` and `clusterIPs` after an update."""
    new = updated(**changes)
    assert (new.get("clusterIP"), new.get("clusterIPs")) == settled


@pytest.mark.parametrize(
    ("ports", "node_ports"),
    [
        pytest.param([{"name": "web", "port": 8080}], [30001], id="kept by name"),
        pytest.param([{"name": "other", "port": 80}], [None], id="another name is another port"),
        pytest.param(
            [{"name": "web", "port": 80}, {"name": "x", "port": 9, "nodePort": 30001}],
            [None, 30001],
            id="not taken from where the client put it",
        ),
    ],
)
def test_node_ports(ports: list[dict[str, Any]], node_ports: list[int | None]) -> None:
    """Node ports that an update does not name."""
    assert [port.get("nodePort") for port in updated(ports=ports)["ports"]] == node_ports


def test_what_only_the_old_type_has_is_dropped() -> None:
    """Node ports and the policy for traffic from outside go with the type."""
    new = updated(type="ClusterIP")
    assert [port.get("nodePort") for port in new["ports"]] == [None, None]
    assert "externalTrafficPolicy" not in new


@pytest.mark.parametrize(
    ("spec", "linked"),
    [
        pytest.param({"clusterIP": "None"}, {"clusterIP": "None", "clusterIPs": ["None"]}, id="the list is filled"),
        pytest.param({"clusterIPs": ["None"]}, {"clusterIPs": ["None"]}, id="the single one is not"),
        pytest.param({}, {}, id="neither"),
    ],
)
def test_a_new_service(spec: dict[str, Any], linked: dict[str, Any]) -> None:
    """What creation makes of the linked fields."""
    service_update.copy_cluster_ip(spec)
    assert spec == linked
