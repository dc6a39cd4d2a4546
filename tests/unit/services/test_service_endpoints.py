"""Endpoints of a Service, and their distribution over slices."""

import copy

import pytest

from podscaler.api import port_map
from podscaler.controlplane.controllers.endpoints import endpoints, slices
from podscaler.controlplane.controllers.endpoints.endpoints import Port
from podscaler.testing import workloads as build

NOW = 1_767_225_600 * 10**9
HTTP = Port("", "TCP", 8080)


def service(*ports, **spec):
    """A Service `web` of pods with app=web."""
    ports = ports or ({"port": 80, "targetPort": 8080, "protocol": "TCP"},)
    metadata = {"name": "web", "namespace": "default", "uid": "uid-service"}
    defaults = {"type": "ClusterIP", "clusterIP": "127.9.224.1", "selector": {"app": "web"}, "ports": list(ports)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": defaults | spec}


def pod(name="web-1", **extra):
    return build.pod(
        name, labels={"app": "web"}, **({"ip": f"127.9.1.{name[4:]}", "node": "here", "ready_at": NOW} | extra)
    )


def target(name):
    return {"kind": "Pod", "namespace": "default", "name": name, "uid": f"uid-{name}"}


@pytest.mark.parametrize(
    ("given", "spec", "expected"),
    [
        pytest.param(pod(), {}, (True, True, False), id="ready"),
        pytest.param(build.pod("web-1", ip="127.9.1.1", node="here"), {}, (False, False, False), id="not ready"),
        pytest.param(pod(deleting=True), {}, (False, True, True), id="terminating, still serving"),
        pytest.param(
            build.pod("web-1", ip="127.9.1.1", node="here"),
            {"publishNotReadyAddresses": True},
            (True, False, False),
            id="published though not ready",
        ),
    ],
)
def test_the_state_of_an_endpoint(given, spec, expected):
    """Ready, serving, terminating; with address, node and pod."""
    assert endpoints.endpoint(service(**spec), given) == {
        "addresses": ["127.9.1.1"],
        "conditions": dict(zip(("ready", "serving", "terminating"), expected, strict=True)),
        "targetRef": target("web-1"),
        "nodeName": "here",
    }


@pytest.mark.parametrize(
    ("subdomain", "hostname"), [("web", "web-0"), ("other", None), (None, None)], ids=["its own", "another", "none"]
)
def test_pods_of_a_stateful_set_have_a_name(subdomain, hostname):
    """The hostname is in the endpoint where the pod's subdomain is the Service."""
    one = pod()
    one["spec"] |= {"hostname": "web-0"} | ({"subdomain": subdomain} if subdomain else {})
    assert endpoints.endpoint(service(), one).get("hostname") == hostname


def test_who_is_an_endpoint():
    """Pods with an address that have not ended."""
    waiting = build.pod("web-2", labels={"app": "web"})
    found = endpoints.EndpointCache().groups(
        service(), [pod("web-1"), waiting, pod("web-3", phase="Failed"), pod("web-4")]
    )
    assert [one["targetRef"]["name"] for one in found[(HTTP,)]] == ["web-1", "web-4"]


NAMED = {"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}


@pytest.mark.parametrize(
    ("port", "extra", "expected"),
    [
        pytest.param({"port": 80, "targetPort": 8080}, {}, (HTTP,), id="a number"),
        pytest.param({"port": 8080}, {}, (HTTP,), id="without a targetPort: the port"),
        pytest.param(
            NAMED, {"ports": [{"name": "web", "containerPort": 3000}]}, (Port("http", "TCP", 3000),), id="a name"
        ),
        pytest.param(NAMED, {"ports": [{"name": "other", "containerPort": 3000}]}, (), id="a name that it lacks"),
        pytest.param(
            NAMED,
            {"ports": [{"name": "web", "containerPort": 53, "protocol": "UDP"}]},
            (),
            id="a name of another protocol",
        ),
        pytest.param(
            {"port": 80},
            {"annotations": {port_map.ANNOTATION: '{"80": 20080}'}},
            (Port("", "TCP", 20080),),
            id="a port that listens elsewhere",
        ),
        pytest.param(
            {"port": 80, "appProtocol": "http"},
            {"annotations": {port_map.ANNOTATION: "no JSON"}},
            (Port("", "TCP", 80, "http"),),
            id="a port map that cannot be read",
        ),
    ],
)
def test_the_ports_of_an_endpoint(port, extra, expected):
    """Where the pod really listens."""
    assert endpoints.ports_on(service(port), pod(**extra)) == expected


def test_pods_with_other_ports_are_a_group_of_their_own():
    """A slice has one set of ports for all its endpoints."""
    moved = pod("web-2", annotations={port_map.ANNOTATION: '{"8080": 28080}'})
    found = endpoints.EndpointCache().groups(service(), [pod("web-1"), moved])
    assert {ports: [one["targetRef"]["name"] for one in group] for ports, group in found.items()} == {
        (HTTP,): ["web-1"],
        (Port("", "TCP", 28080),): ["web-2"],
    }


def many(count, first=1):
    """Endpoints of so many pods."""
    return [
        {"addresses": ["127.9.1.1"], "conditions": {"ready": True}, "targetRef": target(f"web-{number}")}
        for number in range(first, first + count)
    ]


def stored(name, found, ports=(HTTP,)):
    """A slice as the registry gives it."""
    made = slices.plan_writes(service(), [], {ports: found}).create[0]
    made["metadata"] |= {"name": name, "uid": f"uid-{name}", "resourceVersion": "7"}
    return made


def sizes(writes):
    return (
        [len(one["endpoints"]) for one in writes.create],
        {one["metadata"]["name"]: len(one["endpoints"]) for one in writes.update},
        [one["metadata"]["name"] for one in writes.delete],
    )


def test_a_new_slice():
    """Labels, owner, ports."""
    headless = service(clusterIP="None")
    headless["metadata"]["labels"] = {"team": "a"}
    assert slices.plan_writes(headless, [], {(HTTP,): many(1)}).create == [
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": "web-",
                "namespace": "default",
                "labels": {
                    "team": "a",
                    "kubernetes.io/service-name": "web",
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                    "service.kubernetes.io/headless": "",
                },
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Service",
                        "name": "web",
                        "uid": "uid-service",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "addressType": "IPv4",
            "endpoints": many(1),
            "ports": [{"name": "", "protocol": "TCP", "port": 8080}],
        }
    ]


@pytest.mark.parametrize(
    ("existing", "groups", "expected"),
    [
        pytest.param([], {}, ([0], {}, []), id="no endpoints: one empty slice"),
        pytest.param([], {(HTTP,): many(250)}, ([100, 100, 50], {}, []), id="at most 100 in a slice"),
        pytest.param([("a", many(3))], {(HTTP,): many(3)}, ([], {}, []), id="nothing to do"),
        pytest.param([("a", many(3))], {(HTTP,): many(4)}, ([], {"a": 4}, []), id="one more fits"),
        pytest.param([("a", many(3))], {(HTTP,): many(1)}, ([], {"a": 1}, []), id="two fewer"),
        pytest.param([("a", many(100))], {(HTTP,): many(101)}, ([1], {}, []), id="a full slice is left alone"),
        pytest.param(
            [("a", many(100)), ("b", many(9, 101))], {(HTTP,): many(110)}, ([], {"b": 10}, []), id="room in the second"
        ),
        pytest.param(
            [("a", many(100)), ("b", many(1, 101))], {(HTTP,): many(100)}, ([], {}, ["b"]), id="an empty slice goes"
        ),
        pytest.param([("a", many(3))], {}, ([0], {}, ["a"]), id="the last endpoint leaves"),
    ],
)
def test_slices_change_as_little_as_possible(existing, groups, expected):
    """What is created, updated and deleted, in endpoints."""
    given = [stored(name, found) for name, found in existing]
    assert sizes(slices.plan_writes(service(), copy.deepcopy(given), groups)) == expected


def test_an_endpoint_that_changed_is_written():
    """It stays in its slice."""
    terminating = many(2)
    terminating[1]["conditions"] = {"ready": False, "serving": True, "terminating": True}
    writes = slices.plan_writes(service(), [stored("a", many(2))], {(HTTP,): terminating})
    assert (writes.create, writes.delete) == ([], [])
    assert writes.update[0]["endpoints"] == terminating
    assert writes.update[0]["metadata"]["resourceVersion"] == "7"


def test_labels_of_the_service_are_followed():
    """A label that is added reaches the slices."""
    labelled = service()
    labelled["metadata"]["labels"] = {"team": "b"}
    writes = slices.plan_writes(labelled, [stored("a", many(1))], {(HTTP,): many(1)})
    assert writes.update[0]["metadata"]["labels"]["team"] == "b"
