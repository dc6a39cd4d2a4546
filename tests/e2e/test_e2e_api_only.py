"""`up --api-only`: the API server alone, for tests and for others' controllers; the old versions that it may serve."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from up_process import Up, eventually

from patience import WITHIN_S
from podscaler.api.protobuf import protobuf

METRICS = "/apis/metrics.k8s.io/v1beta1"
HPAS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
VIEWER = "31ada4fd-adec-460c-809a-9e56ceb75269"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """An API server alone, with a second user and all versions of autoscalers."""
    folder = tmp_path_factory.mktemp("api-only")
    users = folder / "users.csv"
    users.write_text(f'{VIEWER},viewer,1001,"viewers,auditors"\n')
    users.chmod(0o600)
    flags = ("--api-only", "--serve-removed-apis", "--token-auth-file", str(users))
    instance = Up(folder / "data", flags).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def _exchange(up: Up, method: str, path: str, body: Any = None, accept: str = "application/json") -> Any:
    """The response with its headers, and its body as bytes."""
    host, port, token, context = up._access()
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=WITHIN_S)
    headers = {"Authorization": f"Bearer {token}", "Accept": accept, "Content-Type": "application/json"}
    connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, content


def test_metrics_are_objects_like_others(api: Up) -> None:
    """PodMetrics and NodeMetrics are created, listed, changed and deleted by clients, as nothing measures them."""
    usage = {"cpu": "5m", "memory": "7Mi"}
    head = {"apiVersion": "metrics.k8s.io/v1beta1", "timestamp": "2026-01-01T00:00:00Z", "window": "15s"}
    pods = f"{METRICS}/namespaces/default/pods"
    made = api.create(pods, {**head, "kind": "PodMetrics", "metadata": {"name": "p"}, "containers": []})
    api.create(f"{METRICS}/nodes", {**head, "kind": "NodeMetrics", "metadata": {"name": "n"}, "usage": usage})
    api.patch(f"{pods}/p", {"containers": [{"name": "c", "usage": usage}]})
    assert api.get(pods)["items"][0]["containers"] == [{"name": "c", "usage": usage}]
    assert api.get(f"{METRICS}/nodes/n")["usage"] == usage
    since = made["metadata"]["resourceVersion"]
    (event,) = api.watch(f"{pods}?watch=true&resourceVersion={since}", until=bool)
    assert event["type"] == "MODIFIED"
    api.delete(f"{pods}/p")
    assert api.find(f"{pods}/p") is None


def test_nothing_happens_by_itself(api: Up) -> None:
    """No controller makes pods, accounts or statuses; namespaces that end wait for somebody else's controller."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    api.create(DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec})
    api.create("/api/v1/namespaces", {"metadata": {"name": "passing"}})
    api.delete("/api/v1/namespaces/passing")
    assert api.get("/apis/apps/v1/replicasets")["items"] == []
    assert api.get("/api/v1/serviceaccounts")["items"] == []
    assert api.get("/api/v1/nodes")["items"] == []
    assert api.get("/api/v1/namespaces/passing")["status"] == {"phase": "Terminating"}


def test_what_the_api_server_makes_itself(api: Up) -> None:
    """Namespaces, its own Service with an address, and the list of what it serves."""
    names = {each["metadata"]["name"] for each in api.get("/api/v1/namespaces")["items"]}
    assert names >= {"default", "kube-node-lease", "kube-public", "kube-system"}
    service = eventually(lambda: api.find("/api/v1/namespaces/default/services/kubernetes"))
    assert service["spec"]["clusterIP"].startswith("127.")
    registered = eventually(lambda: api.find("/apis/apiregistration.k8s.io/v1/apiservices/v2.autoscaling"))
    assert registered["status"]["conditions"][0]["status"] == "True"


def test_a_second_user_has_no_rights(api: Up) -> None:
    """Users of the token file are known, and may do what they are allowed to: nothing yet."""
    assert api.request("GET", HPAS, token=VIEWER).status == 403
    review = api.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=VIEWER).body
    assert review["status"]["userInfo"]["username"] == "viewer"
    assert {"viewers", "auditors"} <= set(review["status"]["userInfo"]["groups"])


def test_the_history_can_be_forgotten(api: Up) -> None:
    """`POST /podscaler/compact` is the admin's; afterwards old versions are gone."""
    assert api.request("POST", "/podscaler/compact", token=VIEWER).status == 403
    assert api.request("POST", "/podscaler/compact").status == 200
    (event,) = api.watch(f"{HPAS}?watch=true&resourceVersion=1", until=lambda _: False)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_protobuf_is_answered_with_protobuf(api: Up) -> None:
    """A client that accepts nothing else gets lists and refusals in protobuf."""
    for path, kind in ((HPAS, "HorizontalPodAutoscalerList"), (f"{HPAS}/none", "Status")):
        response, content = _exchange(api, "GET", path, accept=protobuf.MEDIA_TYPE)
        assert (response.headers["Content-Type"], protobuf.decode(content).kind) == (protobuf.MEDIA_TYPE, kind)


def test_removed_versions_are_served_with_a_warning(api: Up) -> None:
    """What was written as v2beta2 is read as every version, each removed one with upstream's deprecation warning."""
    old = "/apis/autoscaling/v2beta2/namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}}}
    body = {"apiVersion": "autoscaling/v2beta2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "old"}}
    response, _ = _exchange(
        api, "POST", old, {**body, "spec": {"scaleTargetRef": target, "maxReplicas": 4, "metrics": [cpu]}}
    )
    assert response.status == 201
    assert "autoscaling/v2beta2 HorizontalPodAutoscaler is deprecated" in response.headers["Warning"]
    assert api.get(f"{HPAS}/old")["spec"]["metrics"] == [cpu]
    for version in ("v2beta1", "v2alpha1"):
        response, content = _exchange(api, "GET", f"{old.replace('v2beta2', version)}/old")
        assert "deprecated" in response.headers["Warning"]
        assert json.loads(content)["spec"]["metrics"][0]["resource"]["targetAverageUtilization"] == 40
    response, content = _exchange(
        api, "GET", "/apis/extensions/v1beta1/namespaces/default/horizontalpodautoscalers/old"
    )
    assert json.loads(content)["spec"]["cpuUtilization"] == {"targetPercentage": 40}


@pytest.mark.usefixtures("kubectl_present")
def test_kubectl_reads_removed_versions(api: Up) -> None:
    """kubectl finds the old versions in discovery and shows the server's warning."""
    manifest = (
        "apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: cli}\n"
        "spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}\n"
    )
    made = api.run_kubectl("create", "-f", "-", stdin=manifest)
    assert (made.returncode, made.stdout) == (0, "horizontalpodautoscaler.autoscaling/cli created\n"), made.stderr
    assert "Warning: autoscaling/v2beta2 HorizontalPodAutoscaler is deprecated" in made.stderr
    full = "horizontalpodautoscalers.v2beta2.autoscaling"
    assert api.kubectl("get", full, "cli", "-o", "jsonpath={.apiVersion}") == "autoscaling/v2beta2"


@pytest.mark.slow
def test_objects_outlive_the_process(tmp_path: Path) -> None:
    """What was created is there after kill -9."""
    up = Up(tmp_path / "data", ("--api-only",)).start()
    up.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}})
    up.kill()
    up.start()
    assert up.find("/api/v1/namespaces/default/configmaps/kept") is not None
    assert up.stop() == 0


def test_requests_that_are_rarely_sent(api: Up) -> None:
    """A method that does not exist, single health checks, and a Table of a review, as kube-apiserver answers them."""
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    asked = (
        ("FROB", HPAS, None, "*/*"),
        ("GET", "/readyz/etcd", None, "*/*"),
        ("GET", "/livez/etcd-readiness", None, "*/*"),
        ("POST", reviews, {}, table),
        ("GET", f"{HPAS}?watch=1", None, "application/yaml"),
    )
    assert [_exchange(api, *each)[0].status for each in asked] == [405, 200, 404, 406, 406]
