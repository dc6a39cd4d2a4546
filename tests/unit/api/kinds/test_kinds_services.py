"""Services and endpoint slices: defaults, what updates keep, refusals, tables."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog

_SERVICE = catalog.get("services")
_SLICE = catalog.get("endpointslices.discovery.k8s.io")
_NOW_NS = 1_767_225_600 * 10**9
_BAD_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def _service(**spec: Any) -> dict[str, Any]:
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], **spec}}
    _SERVICE.versions[0].default(service)
    return service


def _faults(new: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(fault) for fault in _SERVICE.strategy.validate(new, old)]


@pytest.mark.parametrize(
    ("spec", "filled"),
    [
        pytest.param(
            {"type": "NodePort"},
            {"type": "NodePort", "externalTrafficPolicy": "Cluster", "internalTrafficPolicy": "Cluster"},
            id="node port",
        ),
        pytest.param({"type": "LoadBalancer"}, {"allocateLoadBalancerNodePorts": True}, id="load balancer"),
        pytest.param(
            {"sessionAffinity": "ClientIP"},
            {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}},
            id="affinity",
        ),
        pytest.param({"ports": [{"port": 80, "targetPort": "web"}]}, {}, id="named port"),
    ],
)
def test_defaults(spec: dict[str, Any], filled: dict[str, Any]) -> None:
    """What a type implies is filled in; what is given stays."""
    found = _service(**spec)["spec"]
    assert {key: found[key] for key in filled} == filled
    assert found["ports"][0]["targetPort"] == spec.get("ports", [{}])[0].get("targetPort", 80)


def test_external_names_have_no_addresses() -> None:
    """A service that is only a name in DNS gets no address and no families."""
    found = _service(type="ExternalName", externalName="example.com", ports=[])["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "internalTrafficPolicy"} & set(found)
    assert _faults({"spec": found}) == []


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        pytest.param({}, [], id="fine"),
        pytest.param({"ports": []}, ["spec.ports: Required value"], id="no ports"),
        pytest.param({"ports": [], "clusterIP": "None"}, [], id="no ports, headless"),
        pytest.param(
            {"ports": [{"port": 0}]},
            [
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
            ],
            id="port zero",
        ),
        pytest.param(
            {"ports": [{"port": 80, "name": "a"}, {"port": 81}]},
            ["spec.ports[1].name: Required value"],
            id="several ports have names",
        ),
        pytest.param(
            {"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]},
            ['spec.ports[1].name: Duplicate value: "a"'],
            id="name twice",
        ),
        pytest.param(
            {"ports": [{"port": 80, "nodePort": 30000}]},
            ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
            id="node port of a cluster IP",
        ),
        pytest.param(
            {"type": "Any"},
            [
                'spec.type: Unsupported value: "Any": '
                'supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
            ],
            id="type",
        ),
        pytest.param(
            {"clusterIP": "x", "clusterIPs": ["x"]},
            [f'spec.clusterIPs[0]: Invalid value: "x": {_BAD_IP}'],
            id="address that is none",
        ),
        pytest.param(
            {"clusterIPs": ["None"]},
            ['spec.clusterIPs: Invalid value: ["None"]: must be empty when `clusterIP` is not specified'],
            id="addresses without the first",
        ),
        pytest.param({"type": "ExternalName"}, ["spec.externalName: Required value"], id="no external name"),
        pytest.param(
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}},
            [
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: "
                "must be greater than 0 and less than 86400"
            ],
            id="affinity that ends at once",
        ),
    ],
)
def test_refusals(spec: dict[str, Any], faults: list[str]) -> None:
    """Each mistake in a service is told with its path, in upstream's words."""
    assert _faults(_service(**spec)) == faults


def test_updates_keep_what_was_given_out() -> None:
    """An update that names no address and no node ports keeps them."""
    address = {"clusterIP": "127.9.0.9", "clusterIPs": ["127.9.0.9"]}
    old = _service(type="NodePort", **address, ports=[{"port": 80, "nodePort": 30001}])
    new = _service(type="NodePort")
    _SERVICE.strategy.prepare_update(new, old)
    assert [new["spec"]["clusterIP"], new["spec"]["clusterIPs"], new["spec"]["ports"][0]["nodePort"]] == [
        "127.9.0.9",
        ["127.9.0.9"],
        30001,
    ]


def test_an_address_may_not_change() -> None:
    """Once a service has an address, a client cannot give it another one."""
    new, old = (_service(clusterIP=each, clusterIPs=[each]) for each in ("127.9.0.8", "127.9.0.9"))
    assert _faults(new, old) == ['spec.clusterIPs[0]: Invalid value: ["127.9.0.8"]: may not change once set']


@pytest.mark.parametrize(
    ("spec", "status", "cells"),
    [
        pytest.param({}, {}, ["ClusterIP", "<none>", "<none>", "80/TCP"], id="no address yet"),
        pytest.param(
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30001}], "clusterIP": "127.9.0.9"},
            {},
            ["NodePort", "127.9.0.9", "<none>", "80:30001/TCP"],
            id="node port",
        ),
        pytest.param({"type": "LoadBalancer"}, {}, ["LoadBalancer", "<none>", "<pending>", "80/TCP"], id="pending"),
        pytest.param(
            {"type": "LoadBalancer"},
            {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}},
            ["LoadBalancer", "<none>", "1.2.3.4,h", "80/TCP"],
            id="balanced",
        ),
        pytest.param(
            {"type": "ExternalName", "externalName": "example.com", "ports": []},
            {},
            ["ExternalName", "<none>", "example.com", "<none>"],
            id="external name",
        ),
    ],
)
def test_table(spec: dict[str, Any], status: dict[str, Any], cells: list[str]) -> None:
    """Type, address, external address and ports."""
    service = {**_service(**spec), "status": status}
    assert _SERVICE.printer.row(service, _NOW_NS)[1:5] == cells


def test_the_table_shows_where_ports_really_are() -> None:
    """A port that may not be bound is shown with the one that stands for it; a node port stays as it is."""
    ports = [{"port": 80}, {"port": 443, "name": "s", "nodePort": 30001}, {"port": 8080, "name": "h"}]
    service = _service(type="NodePort", ports=ports)
    service["metadata"]["annotations"] = {"podscaler.dev/port-map": '{"80": 20080, "443": 20443}'}
    assert _SERVICE.printer.row(service, _NOW_NS)[4] == "80:20080/TCP,443:30001/TCP,8080/TCP"


def _slice(**parts: Any) -> dict[str, Any]:
    slice_ = {"metadata": {"name": "s"}, "addressType": "IPv4", **parts}
    _SLICE.versions[0].default(slice_)
    return slice_


@pytest.mark.parametrize(
    ("parts", "faults"),
    [
        pytest.param({"endpoints": [{"addresses": ["127.9.0.9"]}]}, [], id="fine"),
        pytest.param({"addressType": ""}, ["addressType: Required value"], id="no type"),
        pytest.param(
            {"endpoints": [{"addresses": []}]},
            ["endpoints[0].addresses: Required value: must contain at least 1 address"],
            id="no address",
        ),
        pytest.param(
            {"endpoints": [{"addresses": ["x"]}]},
            [f'endpoints[0].addresses[0]: Invalid value: "x": {_BAD_IP}'],
            id="address that is none",
        ),
        pytest.param(
            {"endpoints": [{"addresses": ["::1"]}]},
            ['endpoints[0].addresses[0]: Invalid value: "::1": must be an IPv4 address'],
            id="other family",
        ),
        pytest.param(
            {"endpoints": [{"addresses": ["127.9.0.9"]}] * 1001},
            ["endpoints: Too many: 1001: must have at most 1000 items"],
            id="too many",
        ),
        pytest.param({"ports": [{"port": 1}, {"port": 2}]}, ['ports[1].name: Duplicate value: ""'], id="names"),
    ],
)
def test_slices(parts: dict[str, Any], faults: list[str]) -> None:
    """Each mistake in an endpoint slice is told with its path."""
    assert [str(fault) for fault in _SLICE.strategy.validate(_slice(**parts), None)] == faults


def test_slice_table() -> None:
    """Ports and addresses, cut short after three."""
    slice_ = _slice(
        ports=[{"port": 80}, {"name": "web"}],
        endpoints=[{"addresses": [f"127.9.0.{host}"]} for host in range(1, 6)],
    )
    assert _SLICE.printer.row(slice_, _NOW_NS)[2:4] == ["80,web", "127.9.0.1,127.9.0.2,127.9.0.3 + 2 more..."]
