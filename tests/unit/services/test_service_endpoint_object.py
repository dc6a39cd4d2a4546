"""What the Endpoints of a Service say, from its pods."""

import pytest

from podscaler.controlplane.controllers.endpoints import endpoint_object, endpoint_subsets
from podscaler.testing import workloads as build

READY_AT = 1_767_225_600 * 10**9
CREATED = "2026-01-01T00:00:00Z"


def service(**spec):
    metadata = {"name": "web", "namespace": "default", "labels": {"team": "a"}}
    return {"metadata": metadata, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]} | spec}


def pod(name, ip, *, ready=True, **extra):
    made = build.pod(name, labels={"app": "web"}, ip=ip, **({"ready_at": READY_AT} if ready else {}))
    made["metadata"]["uid"] = f"uid-{name}"
    made["spec"] |= {"nodeName": "here"} | extra
    return made


def address(name, ip, **more):
    reference = {"kind": "Pod", "namespace": "default", "name": name, "uid": f"uid-{name}"}
    return {"ip": ip, "nodeName": "here", "targetRef": reference} | more


PORT = {"port": 80, "protocol": "TCP"}
ENDING = pod("c", "127.9.1.3")
ENDING["metadata"]["deletionTimestamp"] = CREATED


@pytest.mark.parametrize(
    ("spec", "pods", "subsets"),
    [
        pytest.param({}, [], [], id="no pods"),
        pytest.param({}, [pod("a", "")], [], id="a pod without an address"),
        pytest.param(
            {},
            [pod("b", "127.9.1.2"), pod("a", "127.9.1.1")],
            [{"addresses": [address("a", "127.9.1.1"), address("b", "127.9.1.2")], "ports": [PORT]}],
            id="sorted by address",
        ),
        pytest.param(
            {},
            [pod("a", "127.9.1.1"), pod("b", "127.9.1.2", ready=False)],
            [
                {
                    "addresses": [address("a", "127.9.1.1")],
                    "notReadyAddresses": [address("b", "127.9.1.2")],
                    "ports": [PORT],
                }
            ],
            id="ready and not",
        ),
        pytest.param({}, [ENDING], [], id="ending"),
        pytest.param(
            {"publishNotReadyAddresses": True},
            [pod("b", "127.9.1.2", ready=False), ENDING],
            [{"addresses": [address("b", "127.9.1.2"), address("c", "127.9.1.3")], "ports": [PORT]}],
            id="those not ready are published",
        ),
        pytest.param(
            {"clusterIP": "None", "ports": None},
            [pod("a", "127.9.1.1", hostname="a-0", subdomain="web")],
            [{"addresses": [address("a", "127.9.1.1", hostname="a-0")]}],
            id="headless without ports",
        ),
        pytest.param({"ports": [{"port": 80, "targetPort": "nope"}]}, [pod("a", "127.9.1.1")], [], id="unknown port"),
    ],
)
def test_subsets(spec, pods, subsets):
    """Each pod stands where its state puts it."""
    made = endpoint_object.object_to_write(service(**spec), pods, None, "")
    assert made["subsets"] == subsets


def test_metadata_of_new_endpoints():
    """The Service's name and labels, the controller's mark, and when what it shows began."""
    made = endpoint_object.object_to_write(service(clusterIP="None"), [], None, CREATED)
    assert made["metadata"] == {
        "name": "web",
        "namespace": "default",
        "labels": {
            "team": "a",
            "service.kubernetes.io/headless": "",
            "endpoints.kubernetes.io/managed-by": "endpoint-controller",
        },
        "annotations": {"endpoints.kubernetes.io/last-change-trigger-time": CREATED},
    }


def test_nothing_is_written_where_nothing_differs():
    """Whatever the trigger time and the annotations of others."""
    made = endpoint_object.object_to_write(service(), [pod("a", "127.9.1.1")], None, CREATED)
    made["metadata"]["annotations"]["mine"] = "kept"
    assert endpoint_object.object_to_write(service(), [pod("a", "127.9.1.1")], made, "2026-01-02T00:00:00Z") is None
    changed = endpoint_object.object_to_write(service(), [], made, "")
    assert (changed["subsets"], changed["metadata"]["annotations"]) == ([], {"mine": "kept"})


@pytest.mark.parametrize(
    ("ready", "waiting", "kept"),
    [
        pytest.param(1000, 0, (1000, 0), id="just full"),
        pytest.param(999, 2, (999, 1), id="ready ones first"),
        pytest.param(1001, 5, (1000, 0), id="ready ones alone"),
    ],
)
def test_at_most_a_thousand_addresses(ready, waiting, kept):
    """The annotation says whether any is missing, and goes when none is."""
    pods = [pod(f"p{number:04}", f"127.9.{number // 250}.{number % 250 + 1}") for number in range(ready)]
    pods += [pod(f"w{number}", f"127.8.0.{number + 1}", ready=False) for number in range(waiting)]
    made = endpoint_object.object_to_write(service(), pods, None, "")
    (subset,) = made["subsets"]
    assert (len(subset["addresses"]), len(subset.get("notReadyAddresses") or [])) == kept
    mark = "endpoints.kubernetes.io/over-capacity"
    assert (made["metadata"]["annotations"].get(mark) == "truncated") == (ready + waiting > 1000)
    assert endpoint_object.object_to_write(service(), pods, made, "") is None
    small = endpoint_object.object_to_write(service(), pods[:1], made, "")
    assert mark not in small["metadata"]["annotations"]


def test_subsets_lose_the_same_share():
    """Rounded up, so that the last one may lose more."""
    many = [{"ip": f"10.0.{number // 250}.{number % 250}"} for number in range(900)]
    subsets = [{"addresses": many, "ports": [{"port": port}]} for port in (1, 2)]
    kept, is_cut = endpoint_object.truncate(subsets)
    assert (is_cut, [len(subset["addresses"]) for subset in kept]) == (True, [500, 500])


@pytest.mark.parametrize(
    ("subsets", "expected"),
    [
        pytest.param(
            [
                {"addresses": [{"ip": "10.0.0.2"}], "ports": [PORT]},
                {"addresses": [{"ip": "10.0.0.1"}], "ports": [PORT]},
            ],
            [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [PORT]}],
            id="the same ports share a subset",
        ),
        pytest.param(
            [{"addresses": [{"ip": "10.0.0.1"}], "notReadyAddresses": [{"ip": "10.0.0.1"}], "ports": [PORT]}],
            [{"notReadyAddresses": [{"ip": "10.0.0.1"}], "ports": [PORT]}],
            id="not ready wins",
        ),
        pytest.param(
            [{"addresses": [{"ip": "10.0.0.1"}]}, {"addresses": [{"ip": "10.0.0.2"}]}],
            [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]}],
            id="without ports",
        ),
    ],
)
def test_canonical_subsets(subsets, expected):
    """Each address once for its ports."""
    assert endpoint_subsets.canonical(subsets) == expected


def test_the_order_of_subsets_is_that_of_what_they_hold():
    """Whatever the order in which they were found."""
    subsets = [
        {"addresses": [{"ip": f"10.0.0.{n}"}], "ports": [{"name": f"p{n}", **PORT, "port": n}]} for n in (1, 2, 3)
    ]
    assert endpoint_subsets.canonical(subsets) == endpoint_subsets.canonical(subsets[::-1])
