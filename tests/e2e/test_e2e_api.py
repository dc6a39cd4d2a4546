"""The API server of a real `up`, over HTTPS: what every client relies on."""

import http.client
import json
from typing import Any

import pytest
from up_process import Up, eventually

from patience import WITHIN_S

pytestmark = [pytest.mark.e2e]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


def config_map(name: str, **labels: str) -> dict[str, Any]:
    """A ConfigMap with one entry."""
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}


def deployment(name: str, replicas: int = 0) -> dict[str, Any]:
    """A Deployment of simulated pods."""
    labels = {"app": name}
    spec = {"runtimeClassName": "simulated", "containers": [{"name": "app", "image": "any"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def autoscaler(name: str) -> dict[str, Any]:
    """An autoscaler of a Deployment of the same name."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }


def watched(up: Up, *, since: str, last: str) -> list[tuple[str, str]]:
    """(event type, object's name) of a watch of ConfigMaps, until `last` is added, which happens now."""
    up.create(CONFIG_MAPS, config_map(last))
    events = up.watch(
        f"{CONFIG_MAPS}?watch=1&resourceVersion={since}&allowWatchBookmarks=true",
        until=lambda found: bool(found) and _told(found[-1]) == ("ADDED", last),
    )
    return [_told(event) for event in events]


def _told(event: Any) -> tuple[str, str]:
    return event["type"], event["object"].get("metadata", {}).get("name", "")


@pytest.mark.parametrize("path", ["/api/v1/pods", "/readyz", "/healthz", "/livez", "/version", "/apis", "/openapi/v3"])
@pytest.mark.parametrize("token", ["", "not-the-token"], ids=["none", "wrong"])
def test_nothing_is_answered_without_the_token(up: Up, path: str, token: str) -> None:
    """Requests without the bearer token are refused with 401, health endpoints too."""
    answer = up.request("GET", path, token=token)
    assert (answer.status, answer.body["reason"]) == (401, "Unauthorized")


def test_objects_are_created_read_changed_and_deleted(up: Up) -> None:
    """Create, get, update, delete; the resourceVersion rises with each change."""
    created = up.create(CONFIG_MAPS, config_map("life"))
    path = f"{CONFIG_MAPS}/life"
    assert up.get(path) == created
    changed = up.request("PUT", path, {**created, "data": {"a": "2"}})
    assert changed.status == 200
    assert changed.body["data"] == {"a": "2"}
    assert int(changed.body["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    up.delete(path)
    assert up.request("GET", path).status == 404


def test_a_stale_update_is_a_conflict(up: Up) -> None:
    """Of two updates made from the same version the second is refused."""
    created = up.create(CONFIG_MAPS, config_map("contested"))
    path = f"{CONFIG_MAPS}/contested"
    assert up.request("PUT", path, {**created, "data": {"a": "2"}}).status == 200
    late = up.request("PUT", path, {**created, "data": {"a": "3"}})
    assert (late.status, late.body["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("content_type", "patch", "expected"),
    [
        ("application/merge-patch+json", {"data": {"a": None, "b": "2"}}, {"b": "2"}),
        ("application/json-patch+json", [{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
        ("application/strategic-merge-patch+json", {"data": {"b": "2"}}, {"a": "1", "b": "2"}),
    ],
    ids=["merge", "json", "strategic"],
)
def test_each_kind_of_patch(up: Up, content_type: str, patch: Any, expected: dict[str, str]) -> None:
    """Merge, JSON and strategic merge patches change what they name and keep the rest."""
    name = content_type.partition("/")[2].partition("-patch")[0]
    up.create(CONFIG_MAPS, config_map(f"patched-{name}"))
    assert up.patch(f"{CONFIG_MAPS}/patched-{name}", patch, content_type)["data"] == expected


def test_a_strategic_patch_merges_lists_by_their_key(up: Up) -> None:
    """A container that is named again is changed in place, another one stays."""
    body = deployment("merged")
    body["spec"]["template"]["spec"]["containers"].append({"name": "log", "image": "any"})
    up.create(DEPLOYMENTS, body)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "log", "image": "other"}]}}}}
    patched = up.patch(f"{DEPLOYMENTS}/merged", patch, "application/strategic-merge-patch+json")
    containers = patched["spec"]["template"]["spec"]["containers"]
    assert {c["name"]: c["image"] for c in containers} == {"app": "any", "log": "other"}


def test_watches_see_each_change_once(up: Up) -> None:
    """From a resourceVersion on: ADDED, MODIFIED, DELETED, in order."""
    since = up.get(CONFIG_MAPS)["metadata"]["resourceVersion"]
    up.create(CONFIG_MAPS, config_map("seen"))
    up.patch(f"{CONFIG_MAPS}/seen", {"data": {"a": "2"}})
    up.delete(f"{CONFIG_MAPS}/seen")
    seen = [event for event in watched(up, since=since, last="seen-last") if event[1] == "seen"]
    assert seen == [("ADDED", "seen"), ("MODIFIED", "seen"), ("DELETED", "seen")]


def test_selectors_select(up: Up) -> None:
    """Label selectors and field selectors pick what they say."""
    up.create(CONFIG_MAPS, config_map("red", colour="red"))
    up.create(CONFIG_MAPS, config_map("blue", colour="blue"))
    by_label = up.get(f"{CONFIG_MAPS}?labelSelector=colour%20in%20(red,green)")["items"]
    by_field = up.get(f"{CONFIG_MAPS}?fieldSelector=metadata.name%3Dblue")["items"]
    assert [item["metadata"]["name"] for item in by_label + by_field] == ["red", "blue"]


def test_pages_of_a_list(up: Up) -> None:
    """`limit` and `continue` give every object once."""
    for index in range(5):
        up.create(CONFIG_MAPS, config_map(f"page-{index}", paged="yes"))
    names, token = [], ""
    while True:
        page = up.get(f"{CONFIG_MAPS}?labelSelector=paged%3Dyes&limit=2&continue={token}")
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert names == [f"page-{index}" for index in range(5)]


def test_names_are_generated(up: Up) -> None:
    """generateName gets five characters."""
    body = config_map("x")
    body["metadata"] = {"generateName": "made-"}
    first, second = (up.create(CONFIG_MAPS, body)["metadata"]["name"] for _ in range(2))
    assert first != second
    assert len(first) == len("made-") + 5


def test_generation_counts_changes_of_the_spec(up: Up) -> None:
    """A change of spec raises generation, a change of labels or status does not."""
    assert up.create(DEPLOYMENTS, deployment("counted"))["metadata"]["generation"] == 1
    path = f"{DEPLOYMENTS}/counted"
    assert up.patch(path, {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    assert up.patch(path, {"spec": {"minReadySeconds": 1}})["metadata"]["generation"] == 2
    assert up.patch(f"{path}/status", {"status": {"replicas": 0}})["metadata"]["generation"] == 2


def test_dependents_go_with_their_owner(up: Up) -> None:
    """An object whose ownerReference leads nowhere any more is collected."""
    owner = up.create(CONFIG_MAPS, config_map("owner"))
    body = config_map("owned")
    body["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]
    up.create(CONFIG_MAPS, body)
    up.delete(f"{CONFIG_MAPS}/owner")
    eventually(lambda: up.find(f"{CONFIG_MAPS}/owned"), until=lambda found: found is None)


def test_the_autoscaler_in_both_versions(up: Up) -> None:
    """What is created as v2 is read as v1, and the other way round."""
    up.create(AUTOSCALERS, autoscaler("both"))
    v1 = up.get("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/both")
    assert v1["spec"]["targetCPUUtilizationPercentage"] == 80
    patch = {"spec": {"targetCPUUtilizationPercentage": 60}}
    up.patch("/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/both", patch)
    metric = up.get(f"{AUTOSCALERS}/both")["spec"]["metrics"][0]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 60}


def test_the_scale_subresource(up: Up) -> None:
    """Scale shows and sets the replicas of a Deployment."""
    up.create(DEPLOYMENTS, deployment("scaled"))
    path = f"{DEPLOYMENTS}/scaled/scale"
    scale = up.get(path)
    assert (scale["kind"], scale["status"]["selector"]) == ("Scale", "app=scaled")
    unconditional = {**scale, "metadata": {"name": "scaled", "namespace": "default"}, "spec": {"replicas": 2}}
    assert up.request("PUT", path, unconditional).body["spec"] == {"replicas": 2}
    eventually(lambda: up.get(path)["status"]["replicas"], until=lambda replicas: replicas == 2)


def test_tables_are_made_on_demand(up: Up) -> None:
    """`as=Table` gives columns and rows."""
    up.create(AUTOSCALERS, autoscaler("tabled"))
    host, port, token, context = up._access()
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=WITHIN_S)
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    connection.request("GET", f"{AUTOSCALERS}/tabled", headers={"Authorization": f"Bearer {token}", "Accept": accept})
    table = json.loads(connection.getresponse().read())
    connection.close()
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names == ["Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"]
    assert table["rows"][0]["cells"][1] == "Deployment/tabled"


KINDS = {
    "/api/v1/namespaces/default/secrets": {"kind": "Secret", "stringData": {"k": "v"}},
    "/api/v1/namespaces/default/serviceaccounts": {"kind": "ServiceAccount"},
    "/api/v1/namespaces/default/services": {"kind": "Service", "spec": {"ports": [{"port": 8080}]}},
    "/api/v1/namespaces/default/events": {
        "kind": "Event",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Test",
        "message": "a test",
        "type": "Normal",
    },
    "/api/v1/namespaces": {"kind": "Namespace"},
    "/api/v1/nodes": {"kind": "Node"},
    "/apis/apps/v1/namespaces/default/replicasets": {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "spec": {**deployment("each-kind")["spec"]},
    },
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "spec": {"holderIdentity": "me"},
    },
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices": {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["127.0.0.9"]}],
    },
}


@pytest.mark.parametrize("path", KINDS, ids=[body["kind"] for body in KINDS.values()])
def test_every_kind_is_kept(up: Up, path: str) -> None:
    """Each kind is created, read, listed, labelled and deleted."""
    body = {"apiVersion": "v1", "metadata": {"name": "each-kind"}, **KINDS[path]}
    created = up.create(path, body)
    assert created["metadata"]["uid"]
    up.patch(f"{path}/each-kind", {"metadata": {"labels": {"a": "b"}}})
    names = [item["metadata"]["name"] for item in up.get(f"{path}?labelSelector=a%3Db")["items"]]
    assert names == ["each-kind"]
    up.delete(f"{path}/each-kind")
    eventually(lambda: up.find(f"{path}/each-kind"), until=lambda found: found is None)


def test_a_status_update_leaves_the_spec_alone(up: Up) -> None:
    """PUT of the status subresource changes status only, PUT of the object everything else."""
    created = up.create(DEPLOYMENTS, {**deployment("two-faced"), "status": {"replicas": 7}})
    assert created["status"].get("replicas", 0) == 0
    unversioned = {**created["metadata"], "resourceVersion": ""}
    changed = {
        **created,
        "metadata": unversioned,
        "spec": {**created["spec"], "replicas": 5},
        "status": {"replicas": 7},
    }
    answer = up.request("PUT", f"{DEPLOYMENTS}/two-faced/status", changed)
    assert (answer.status, answer.body["spec"]["replicas"], answer.body["status"]["replicas"]) == (200, 0, 7)


def test_a_watch_may_begin_with_what_there_is(up: Up) -> None:
    """sendInitialEvents: an ADDED for each object, then the bookmark that ends them."""
    up.create(CONFIG_MAPS, config_map("initial", stream="yes"))
    query = (
        "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        "&labelSelector=stream%3Dyes"
    )
    events = up.watch(f"{CONFIG_MAPS}?{query}", until=lambda found: len(found) == 2)
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.slow
def test_a_watch_from_forgotten_history_is_410(fresh_up: Up) -> None:
    """Whoever asks for changes that are no longer kept is told to list again."""
    fresh_up.start()
    since = fresh_up.get(CONFIG_MAPS)["metadata"]["resourceVersion"]
    fresh_up.create(CONFIG_MAPS, config_map("forgotten"))
    assert fresh_up.request("POST", "/podscaler/compact").status == 200
    (event,) = fresh_up.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}", until=bool)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_aggregated_discovery(up: Up) -> None:
    """One request tells all groups, versions and resources."""
    host, port, token, context = up._access()
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=WITHIN_S)
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    connection.request("GET", "/apis", headers={"Authorization": f"Bearer {token}", "Accept": accept})
    document = json.loads(connection.getresponse().read())
    connection.close()
    found = {
        (group["metadata"]["name"], version["version"], resource["resource"])
        for group in document["items"]
        for version in group["versions"]
        for resource in version["resources"]
    }
    assert {("autoscaling", "v2", "horizontalpodautoscalers"), ("apps", "v1", "deployments")} <= found


def test_discovery_and_openapi(up: Up) -> None:
    """Groups, resources, and OpenAPI documents with paths."""
    groups = [group["name"] for group in up.get("/apis")["groups"]]
    assert {"apps", "autoscaling", "metrics.k8s.io", "coordination.k8s.io", "discovery.k8s.io"} <= set(groups)
    resources = {resource["name"] for resource in up.get("/apis/autoscaling/v2")["resources"]}
    assert resources == {"horizontalpodautoscalers", "horizontalpodautoscalers/status"}
    index = json.loads(up.get("/openapi/v3"))  # as text, like upstream's
    url = index["paths"]["apis/autoscaling/v2"]["serverRelativeURL"]
    document = up.get(url)
    path = "/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/{name}"
    assert "fieldValidation" in json.dumps(document["paths"][path]["patch"])


def test_faults_of_a_manifest_are_named(up: Up) -> None:
    """422 with field paths, in upstream's words."""
    body = autoscaler("faulty")
    body["spec"]["maxReplicas"] = 0
    answer = up.request("POST", AUTOSCALERS, body)
    assert answer.status == 422
    fields = {cause["field"] for cause in answer.body["details"]["causes"]}
    assert fields == {"spec.maxReplicas"}
    assert "must be greater than or equal to `minReplicas`" in answer.body["message"]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"kind":'),
        ("application/yaml", b"kind: [unclosed"),
        ("application/vnd.kubernetes.protobuf", b"k8s\x00\xff\xff\xff"),
    ],
    ids=["json", "yaml", "protobuf"],
)
def test_malformed_bodies_are_400(up: Up, content_type: str, body: bytes) -> None:
    """What cannot be decoded is the client's fault, and is said so."""
    answer = up.request("POST", CONFIG_MAPS, body, content_type=content_type)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


def test_kubectl_speaks_protobuf(up: Up, kubectl_present: None) -> None:
    """`create namespace` and `create deployment` send protobuf and have no fallback."""
    assert up.kubectl("create", "namespace", "made-by-protobuf") == "namespace/made-by-protobuf created\n"
    image = "--image=registry.k8s.io/pause"
    up.kubectl("create", "deployment", "pause", image, "--replicas=0", "-n", "made-by-protobuf")
    up.kubectl("delete", "namespace", "made-by-protobuf", "--timeout=120s")


def test_the_node_is_this_machine(up: Up) -> None:
    """There is one node, it is ready, and it holds its Lease."""
    node = up.node()
    conditions = {condition["type"]: condition["status"] for condition in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node['metadata']['name']}"
    assert eventually(lambda: up.find(lease))["spec"]["holderIdentity"] == node["metadata"]["name"]


def test_readyz_says_ok(fresh_up: Up) -> None:
    """An authenticated /readyz is answered once `up` has said that it is up."""
    fresh_up.start()
    assert fresh_up.get("/readyz") == "ok"


def test_no_acknowledged_write_is_lost_by_a_crash(fresh_up: Up) -> None:
    """After kill -9 in the middle of writing, everything that was answered is there."""
    fresh_up.start()
    acknowledged = [fresh_up.create(CONFIG_MAPS, config_map(f"kept-{index}"))["metadata"] for index in range(20)]
    fresh_up.kill()
    fresh_up.start()
    items = {item["metadata"]["name"]: item["metadata"] for item in fresh_up.get(CONFIG_MAPS)["items"]}
    assert [items[metadata["name"]]["resourceVersion"] for metadata in acknowledged] == [
        metadata["resourceVersion"] for metadata in acknowledged
    ]


@pytest.mark.slow
def test_a_watch_goes_on_after_a_crash(fresh_up: Up) -> None:
    """A resourceVersion from before the crash is still good to watch from."""
    fresh_up.start()
    since = fresh_up.get(CONFIG_MAPS)["metadata"]["resourceVersion"]
    fresh_up.create(CONFIG_MAPS, config_map("before"))
    fresh_up.kill()
    fresh_up.start()
    seen = [event for event in watched(fresh_up, since=since, last="after") if event[1] in {"before", "after"}]
    assert seen == [("ADDED", "before"), ("ADDED", "after")]
