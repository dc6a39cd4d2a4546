"""What names of Services and pods stand for."""

import socket

import pytest

from podscaler.controlplane.network import dns_messages
from podscaler.controlplane.network.dns_zone import NameAnswer, Zone

A, SRV, PTR, AAAA = dns_messages.A, dns_messages.SRV, dns_messages.PTR, dns_messages.AAAA


def shown(found: NameAnswer | None) -> list[str] | None:
    """The addresses that were found, other records by their bytes; None for a name that there is not."""
    if found is None:
        return None
    return [socket.inet_ntoa(one.data) if one.type == A else repr(one.data) for one in found.records]


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        pytest.param("php-apache.default.svc.cluster.local", A, ["127.7.224.1"], id="service"),
        pytest.param("php-apache.default.svc.cluster.local", AAAA, [], id="no IPv6"),
        pytest.param("nobody.default.svc.cluster.local", A, None, id="no such service"),
        pytest.param("php-apache.other.svc.cluster.local", A, None, id="no such namespace"),
        pytest.param("x.php-apache.default.svc.cluster.local", A, None, id="nothing below a service with an address"),
        pytest.param(
            "web.default.svc.cluster.local", A, ["127.7.1.1", "127.7.1.2"], id="headless: those that are ready"
        ),
        pytest.param("web-0.web.default.svc.cluster.local", A, ["127.7.1.1"], id="by hostname"),
        pytest.param("127-7-1-2.web.default.svc.cluster.local", A, ["127.7.1.2"], id="by address"),
        pytest.param("web-2.web.default.svc.cluster.local", A, None, id="not ready"),
        pytest.param("127-7-1-9.default.pod.cluster.local", A, ["127.7.1.9"], id="pod"),
        pytest.param("nonsense.default.pod.cluster.local", A, None, id="no address"),
        pytest.param("default.svc.cluster.local", A, [], id="namespace"),
        pytest.param("svc.cluster.local", A, [], id="svc"),
        pytest.param("cluster.local", A, [], id="zone"),
        pytest.param("x.cluster.local", A, None, id="nothing else"),
        pytest.param("_http._udp.web.default.svc.cluster.local", SRV, None, id="no such port"),
        pytest.param("_http._tcp.web.default.svc.cluster.local", A, [], id="port of another type"),
        pytest.param("9.1.7.127.in-addr.arpa", PTR, None, id="address of nobody"),
    ],
)
def test_names(zone: Zone, name: str, kind: int, expected: list[str] | None) -> None:
    """Each form of name leads where the specification says."""
    assert zone.contains(name)
    assert shown(zone.find(name, kind)) == expected


def test_ports(zone: Zone) -> None:
    """A named port leads to the Service's name, of a headless one to its endpoints'."""
    one = zone.find("_http._tcp.php-apache.default.svc.cluster.local", SRV)
    two = zone.find("_http._tcp.web.default.svc.cluster.local", SRV)
    base = "web.default.svc.cluster.local"
    assert one == NameAnswer((dns_messages.srv_record("php-apache.default.svc.cluster.local", 80),))
    assert two == NameAnswer(
        (dns_messages.srv_record(f"web-0.{base}", 80), dns_messages.srv_record(f"127-7-1-2.{base}", 80))
    )


def test_names_of_addresses(zone: Zone) -> None:
    """The address of a Service, and of an endpoint of a headless one, has a name."""
    names = [zone.find(f"{address}.in-addr.arpa", PTR) for address in ("1.224.7.127", "1.1.7.127")]
    assert names == [
        NameAnswer((dns_messages.ptr_record("php-apache.default.svc.cluster.local"),)),
        NameAnswer((dns_messages.ptr_record("web-0.web.default.svc.cluster.local"),)),
    ]


def test_external_name(zone: Zone) -> None:
    """An ExternalName is another word for a name outside."""
    assert zone.find("elsewhere.default.svc.cluster.local", A) == NameAnswer(alias="example.org")


@pytest.mark.parametrize("name", ["example.org", "local", "8.8.8.8.in-addr.arpa", "x.in-addr.arpa"])
def test_names_of_others(zone: Zone, name: str) -> None:
    """Names outside the cluster are asked of others."""
    assert not zone.contains(name)
