"""What stands in a container's resolv.conf and hosts file."""

import socket
from typing import Any

import pytest

from podscaler.controlplane.kubelet.volumes import host_names, name_files
from podscaler.controlplane.kubelet.volumes.references import ContainerConfigError

MACHINE = "nameserver 10.0.0.1\nsearch corp.example\noptions edns0\n"
CLUSTER = "search default.svc.cluster.local svc.cluster.local cluster.local corp.example\n"


def pod(**spec: Any) -> dict[str, Any]:
    """A pod."""
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "nameserver", "expected"),
    [
        pytest.param({}, "127.2.0.1", f"nameserver 127.2.0.1\n{CLUSTER}options ndots:5\n", id="by default"),
        pytest.param({"dnsPolicy": "Default"}, "127.2.0.1", None, id="the machine's"),
        pytest.param({"hostNetwork": True}, "127.2.0.1", None, id="host network"),
        pytest.param(
            {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
            "127.2.0.1",
            f"nameserver 127.2.0.1\n{CLUSTER}options ndots:5\n",
            id="host network with the cluster's names",
        ),
        pytest.param({}, "", None, id="no name server"),
        pytest.param(
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["9.9.9.9"], "searches": ["a.b"]}},
            "127.2.0.1",
            "nameserver 9.9.9.9\nsearch a.b\n",
            id="one's own",
        ),
        pytest.param(
            {
                "dnsConfig": {
                    "nameservers": ["9.9.9.9"],
                    "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}],
                }
            },
            "127.2.0.1",
            f"nameserver 127.2.0.1\nnameserver 9.9.9.9\n{CLUSTER}options ndots:2 rotate\n",
            id="more",
        ),
        pytest.param(
            {"dnsPolicy": "Default", "dnsConfig": {"searches": ["a.b"]}},
            "127.2.0.1",
            "nameserver 10.0.0.1\nsearch corp.example a.b\noptions edns0\n",
            id="more than the machine's",
        ),
    ],
)
def test_resolv_conf(spec: dict[str, Any], nameserver: str, expected: str | None) -> None:
    """`dnsPolicy` chooses where to begin, `dnsConfig` adds; None leaves the machine's file."""
    assert name_files.resolv_conf(pod(**spec), nameserver=nameserver, machine_resolv_conf=MACHINE) == expected


def lines(text: str) -> list[str]:
    """What stands behind the part that every hosts file has."""
    return [line for line in text.splitlines()[7:] if line and not line.startswith("#")]


def test_hosts() -> None:
    """The pod finds itself, its aliases, and the Services that nobody else knows: short where they are its own."""
    services = [
        {"metadata": {"name": "a", "namespace": "default"}, "spec": {"clusterIP": "127.2.224.1"}},
        {"metadata": {"name": "b", "namespace": "other"}, "spec": {"clusterIP": "127.2.224.2"}},
        {"metadata": {"name": "c", "namespace": "default"}, "spec": {"clusterIP": "None"}},
    ]
    found = name_files.hosts(
        pod(hostname="web-0", subdomain="web", hostAliases=[{"ip": "10.1.2.3", "hostnames": ["x", "y"]}]),
        pod_ip="127.2.1.1",
        services=services,
    )
    assert lines(found) == [
        "127.2.1.1\tweb-0.web.default.svc.cluster.local\tweb-0",
        "127.2.224.1\ta.default.svc.cluster.local a.default.svc a.default a",
        "127.2.224.2\tb.other.svc.cluster.local b.other.svc b.other",
        "10.1.2.3\tx\ty",
    ]


QUALIFIED = "h.s.default.svc.cluster.local"


@pytest.mark.parametrize(
    ("spec", "host_name", "own_names"),
    [
        pytest.param({}, "p", ["p"], id="the pod's name"),
        pytest.param({"hostname": "h"}, "h", ["h"], id="hostname"),
        pytest.param({"hostname": "h", "subdomain": "s"}, "h", [QUALIFIED, "h"], id="subdomain"),
        pytest.param(
            {"hostname": "h", "subdomain": "s", "setHostnameAsFQDN": True}, QUALIFIED, [QUALIFIED, "h"], id="as FQDN"
        ),
        pytest.param({"setHostnameAsFQDN": True}, "p", ["p"], id="as FQDN without a domain"),
        pytest.param({"hostnameOverride": "a.b", "subdomain": "s"}, "a.b", ["a.b"], id="override"),
        pytest.param({"hostname": f"{'x' * 62}-{'y' * 9}"}, "x" * 62, ["x" * 62], id="cut to 63 characters"),
        pytest.param({"hostNetwork": True}, socket.gethostname(), ["p"], id="the machine's"),
    ],
)
def test_host_names(spec: dict[str, Any], host_name: str, own_names: list[str]) -> None:
    """The host name, and the names of the pod's address in its hosts file."""
    assert host_names.host_name(pod(**spec)) == host_name
    assert lines(name_files.hosts(pod(**spec), pod_ip="127.2.1.1", services=[])) == [
        "\t".join(["127.2.1.1", *own_names])
    ]


def test_a_qualified_host_name_may_be_too_long() -> None:
    """Linux takes 64 characters; kubelet's message names the name and both lengths."""
    spec = {"hostname": "h" * 37, "subdomain": "s", "setHostnameAsFQDN": True}
    with pytest.raises(
        ContainerConfigError, match=r"is too long \(64 characters is the max, 65 characters requested\)"
    ):
        host_names.host_name(pod(**spec))
