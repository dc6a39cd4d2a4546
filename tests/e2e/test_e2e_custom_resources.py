"""CustomResourceDefinitions on a real `up`: their objects are scaled by an autoscaler, owned, deleted, and survive."""

import json
from typing import Any

import pytest
from up_process import Up, eventually

pytestmark = pytest.mark.e2e

Object = dict[str, Any]

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def definition(group: str, *, plural: str = "gears", kind: str = "Gear") -> Object:
    """A namespaced kind with status and scale."""
    replicas = {"type": "integer", "minimum": 0, "default": 1}
    spec_schema = {"type": "object", "default": {}, "properties": {"replicas": replicas}}
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec_schema, "status": status}}},
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": [{"name": "Wanted", "type": "integer", "jsonPath": ".spec.replicas"}],
    }
    names = {"plural": plural, "kind": kind, "shortNames": [f"{plural[:2]}x"], "categories": ["all"]}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def define(up: Up, group: str, **names: str) -> str:
    """Create the kind and wait until it is served; its collection in `default`."""
    crd = up.create(DEFINITIONS, definition(group, **names))
    plural = crd["spec"]["names"]["plural"]
    eventually(lambda: up.request("GET", f"/apis/{group}/v1/{plural}").status, until=lambda status: status == 200)
    return f"/apis/{group}/v1/namespaces/default/{plural}"


def run_pods(up: Up, collection: str, name: str) -> int:
    """What a controller of the kind would do: as many simulated pods as are wanted, and the status that says so."""
    gear = up.get(f"{collection}/{name}")
    wanted: int = gear["spec"]["replicas"]
    have = {pod["metadata"]["name"] for pod in up.get(f"{PODS}?labelSelector=app%3D{name}")["items"]}
    for index in range(wanted):
        if f"{name}-{index}" not in have:
            spec = {"runtimeClassName": "simulated", "containers": [{"name": "app", "image": "none"}]}
            up.create(PODS, {"metadata": {"name": f"{name}-{index}", "labels": {"app": name}}, "spec": spec})
    up.patch(f"{collection}/{name}/status", {"status": {"replicas": wanted, "selector": f"app={name}"}})
    return wanted


def test_a_custom_resource_is_autoscaled(up: Up) -> None:
    """An HPA scales a custom resource by its scale subresource, and finds its pods by labelSelectorPath."""
    gears = define(up, "scaled.example.com")
    up.create(gears, {"apiVersion": "scaled.example.com/v1", "kind": "Gear", "metadata": {"name": "drive"}})
    run_pods(up, gears, "drive")
    state = {"name": "drive", "labels": {"podscaler.dev/metrics": "custom"}}
    data = {"load": json.dumps({"pods": "app=drive", "value": 30, "sharedBy": "app=drive"})}
    up.create(CONFIG_MAPS, {"metadata": state, "data": data})
    metric = {"metric": {"name": "load"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "scaled.example.com/v1", "kind": "Gear", "name": "drive"},
        "maxReplicas": 5,
        "metrics": [{"type": "Pods", "pods": metric}],
    }
    up.create(AUTOSCALERS, {"metadata": {"name": "drive"}, "spec": spec})
    eventually(lambda: run_pods(up, gears, "drive"), until=lambda replicas: replicas == 3, every_s=0.5)


def test_owners_and_namespaces_of_custom_kinds(up: Up) -> None:
    """Dependents of a custom object go with it, and custom objects go with their namespace."""
    gears = define(up, "owned.example.com")
    body = {"apiVersion": "owned.example.com/v1", "kind": "Gear", "metadata": {"name": "owner"}}
    owner = up.create(gears, body)
    reference = {"apiVersion": "owned.example.com/v1", "kind": "Gear", "name": "owner", "uid": owner["metadata"]["uid"]}
    up.create(CONFIG_MAPS, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    up.delete(f"{gears}/owner")
    eventually(lambda: up.find(f"{CONFIG_MAPS}/owned"), until=lambda found: found is None)

    up.create("/api/v1/namespaces", {"metadata": {"name": "gearbox"}})
    inside = gears.replace("/default/", "/gearbox/")
    up.create(inside, {**body, "metadata": {"name": "inside"}})
    up.delete("/api/v1/namespaces/gearbox")
    eventually(lambda: up.find("/api/v1/namespaces/gearbox"), until=lambda found: found is None)
    assert up.get("/apis/owned.example.com/v1/gears")["items"] == []


@pytest.mark.usefixtures("kubectl_present")
def test_kubectl_works_with_custom_resources(up: Up) -> None:
    """kubectl gets, scales, explains and deletes custom resources and their definition."""
    define(up, "kubectl.example.com", plural="wheels", kind="Wheel")
    manifest = {"apiVersion": "kubectl.example.com/v1", "kind": "Wheel", "metadata": {"name": "front"}}
    assert up.kubectl("apply", "-f", "-", stdin=json.dumps(manifest)).split() == [
        "wheel.kubectl.example.com/front",
        "created",
    ]
    up.kubectl("scale", "wheels", "front", "--replicas=4")
    assert up.kubectl("get", "whx", "front").split() == ["NAME", "WANTED", "front", "4"]
    assert "replicas\t<integer>" in up.kubectl("explain", "wheels.spec")
    up.kubectl("delete", "crd", "wheels.kubectl.example.com", "--timeout=120s")
    assert up.run_kubectl("get", "wheels").returncode == 1


@pytest.mark.slow
def test_definitions_survive_a_crash(fresh_up: Up) -> None:
    """After kill -9 a definition and its objects are there as soon as the server answers; another one works, too."""
    fresh_up.start()
    gears = define(fresh_up, "kept.example.com")
    fresh_up.create(gears, {"apiVersion": "kept.example.com/v1", "kind": "Gear", "metadata": {"name": "kept"}})
    fresh_up.kill()
    fresh_up.start()
    assert fresh_up.get(f"{gears}/kept/scale")["spec"] == {"replicas": 1}
    fresh_up.delete(f"{DEFINITIONS}/gears.kept.example.com")
    eventually(lambda: fresh_up.request("GET", f"{gears}/kept").status, until=lambda status: status == 404)
    eventually(lambda: fresh_up.find(f"{DEFINITIONS}/gears.kept.example.com"), until=lambda found: found is None)
