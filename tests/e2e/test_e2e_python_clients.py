"""The official Python client works with our server as it is: typed and dynamic, watches, patches, leader election."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config, dynamic, stream, utils, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock
from up_process import Object, Up, eventually

from patience import WITHIN_S

pytestmark = [pytest.mark.e2e]

LABELS = {"app": "web"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The API server alone."""
    instance = Up(tmp_path_factory.mktemp("clients") / "data", ("--api-only",)).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


@contextmanager
def connected(up: Up) -> Iterator[client.ApiClient]:
    """The client, made from the kubeconfig that `up` writes; its connections are closed in the end."""
    made = config.new_client_from_config(str(up.kubeconfig))
    yield made
    disconnect(made)


def disconnect(api: client.ApiClient) -> None:
    """Close the connections that a client keeps, which its own `close` leaves open."""
    api.close()
    api.rest_client.pool_manager.clear()


@pytest.fixture(scope="module")
def api(served: Up) -> Iterator[client.ApiClient]:
    """A client of it."""
    with connected(served) as made:
        yield made


@pytest.fixture
def namespace(api: client.ApiClient, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name: str = request.node.name.replace("_", "-")
    client.CoreV1Api(api).create_namespace({"metadata": {"name": name}})
    return name


def deployment(name: str, replicas: int = 1) -> client.V1Deployment:
    """A Deployment in the client's own types."""
    pod = client.V1PodSpec(containers=[client.V1Container(name="main", image="example.org/web")])
    return client.V1Deployment(
        metadata=client.V1ObjectMeta(name=name),
        spec=client.V1DeploymentSpec(
            replicas=replicas,
            selector=client.V1LabelSelector(match_labels=LABELS),
            template=client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels=LABELS), spec=pod),
        ),
    )


def autoscaler(name: str) -> client.V2HorizontalPodAutoscaler:
    """An autoscaler of the Deployment of that name."""
    target = client.V2MetricTarget(type="Utilization", average_utilization=50)
    metric = client.V2MetricSpec(type="Resource", resource=client.V2ResourceMetricSource(name="cpu", target=target))
    spec = client.V2HorizontalPodAutoscalerSpec(
        scale_target_ref=client.V2CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name=name),
        min_replicas=1,
        max_replicas=5,
        metrics=[metric],
    )
    return client.V2HorizontalPodAutoscaler(metadata=client.V1ObjectMeta(name=name), spec=spec)


def test_typed_objects_are_read_as_they_were_written(api: client.ApiClient, namespace: str) -> None:
    """Create, read, replace, list and delete, in the client's types."""
    autoscaling = client.AutoscalingV2Api(api)
    made = autoscaling.create_namespaced_horizontal_pod_autoscaler(namespace, autoscaler("web"))
    read = autoscaling.read_namespaced_horizontal_pod_autoscaler("web", namespace)
    assert read.spec == made.spec == autoscaler("web").spec
    read.spec.max_replicas = 7
    replaced = autoscaling.replace_namespaced_horizontal_pod_autoscaler("web", namespace, read)
    assert replaced.spec.max_replicas == 7
    listed = autoscaling.list_horizontal_pod_autoscaler_for_all_namespaces(
        field_selector=f"metadata.namespace={namespace}"
    )
    assert [each.metadata.uid for each in listed.items] == [made.metadata.uid]
    autoscaling.delete_namespaced_horizontal_pod_autoscaler("web", namespace)
    with pytest.raises(ApiException, match="NotFound"):
        autoscaling.read_namespaced_horizontal_pod_autoscaler("web", namespace)


def test_old_and_new_versions_show_the_same_autoscaler(api: client.ApiClient, namespace: str) -> None:
    """What is written as autoscaling/v2 is read as autoscaling/v1."""
    client.AutoscalingV2Api(api).create_namespaced_horizontal_pod_autoscaler(namespace, autoscaler("web"))
    old = client.AutoscalingV1Api(api).read_namespaced_horizontal_pod_autoscaler("web", namespace)
    assert old.spec.target_cpu_utilization_percentage == 50


def test_a_refusal_is_an_exception_with_a_status(api: client.ApiClient, namespace: str) -> None:
    """Conflicts and invalid objects come with code, reason and a Status as body."""
    apps = client.AppsV1Api(api)
    made = apps.create_namespaced_deployment(namespace, deployment("web"))
    apps.patch_namespaced_deployment("web", namespace, {"metadata": {"labels": {"changed": "yes"}}})
    with pytest.raises(ApiException) as conflict:
        apps.replace_namespaced_deployment("web", namespace, made)
    assert (conflict.value.status, conflict.value.reason) == (409, "Conflict")
    invalid = autoscaler("web")
    invalid.spec.max_replicas = 0
    with pytest.raises(ApiException, match=r"spec\.maxReplicas") as refused:
        client.AutoscalingV2Api(api).create_namespaced_horizontal_pod_autoscaler(namespace, invalid)
    assert refused.value.status == 422


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        ("application/json-patch+json", [{"op": "replace", "path": "/spec/replicas", "value": 3}]),
        ("application/merge-patch+json", {"spec": {"replicas": 3}}),
        ("application/strategic-merge-patch+json", {"spec": {"replicas": 3}}),
    ],
    ids=["json", "merge", "strategic"],
)
def test_patches_of_every_type(api: client.ApiClient, content_type: str, patch: Any) -> None:
    """Each does what its type says."""
    apps = client.AppsV1Api(api)
    name = content_type.split("/")[1].split("+", maxsplit=1)[0]
    apps.create_namespaced_deployment("default", deployment(name))
    patched = apps.patch_namespaced_deployment(name, "default", patch, _content_type=content_type)
    assert patched.spec.replicas == 3
    assert patched.spec.template.spec.containers[0].image == "example.org/web"


def test_the_scale_subresource(api: client.ApiClient, namespace: str) -> None:
    """It is read, replaced and patched, and the Deployment follows."""
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment("web", replicas=2))
    scale = apps.read_namespaced_deployment_scale("web", namespace)
    assert (scale.spec.replicas, scale.status.selector) == (2, "app=web")
    scale.spec.replicas = 5
    assert apps.replace_namespaced_deployment_scale("web", namespace, scale).spec.replicas == 5
    assert apps.patch_namespaced_deployment_scale("web", namespace, {"spec": {"replicas": 6}}).spec.replicas == 6
    assert apps.read_namespaced_deployment("web", namespace).spec.replicas == 6


def test_a_watch_tells_every_change_in_order(api: client.ApiClient, namespace: str) -> None:
    """From a list's resourceVersion on, nothing is missed, nothing is told twice."""
    core = client.CoreV1Api(api)
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    for number in range(3):
        core.create_namespaced_config_map(namespace, {"metadata": {"name": f"c{number}"}, "data": {}})
    core.patch_namespaced_config_map("c0", namespace, {"data": {"a": "b"}})
    core.delete_namespaced_config_map("c1", namespace)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "last"}})
    follow = watch.Watch()
    seen = []
    for event in follow.stream(core.list_namespaced_config_map, namespace, resource_version=start, timeout_seconds=120):
        seen.append((event["type"], event["object"].metadata.name))
        if seen[-1][1] == "last":
            follow.stop()
    assert seen == [
        ("ADDED", "c0"),
        ("ADDED", "c1"),
        ("ADDED", "c2"),
        ("MODIFIED", "c0"),
        ("DELETED", "c1"),
        ("ADDED", "last"),
    ]


def test_an_informer_holds_what_the_server_has(api: client.ApiClient, namespace: str) -> None:
    """Its cache follows creations and deletions."""
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "before"}})
    informer = SharedInformer(core.list_namespaced_config_map, namespace=namespace)
    informer.start()
    try:
        eventually(lambda: names(informer), until=lambda found: found == ["before"])
        core.create_namespaced_config_map(namespace, {"metadata": {"name": "after"}})
        core.delete_namespaced_config_map("before", namespace)
        eventually(lambda: names(informer), until=lambda found: found == ["after"])
    finally:
        informer.stop()


def names(informer: SharedInformer) -> list[str]:
    """The names of what an informer holds."""
    return sorted(each.metadata.name for each in informer.cache.list())


def test_pages_of_a_list(api: client.ApiClient, namespace: str) -> None:
    """Limit and continue tokens give every object once."""
    core = client.CoreV1Api(api)
    for number in range(5):
        core.create_namespaced_config_map(namespace, {"metadata": {"name": f"c{number}"}})
    found, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        found.append([each.metadata.name for each in page.items])
        token = page.metadata._continue or ""
    assert found == [["c0", "c1"], ["c2", "c3"], ["c4"]]


@pytest.fixture(scope="module")
def untyped(api: client.ApiClient, tmp_path_factory: pytest.TempPathFactory) -> dynamic.DynamicClient:
    """The dynamic client, which finds resources by discovery."""
    return dynamic.DynamicClient(api, cache_file=str(tmp_path_factory.mktemp("discovery") / "cache.json"))


def test_the_dynamic_client_finds_resources(untyped: dynamic.DynamicClient, namespace: str) -> None:
    """By kind and by short name; objects are created, patched, listed and deleted."""
    autoscalers = untyped.resources.get(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler")
    assert untyped.resources.get(api_version="autoscaling/v2", short_names=["hpa"]) == autoscalers
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body = {"metadata": {"name": "web"}, "spec": {"maxReplicas": 4, "scaleTargetRef": target}}
    autoscalers.create(body={**body, "apiVersion": "autoscaling/v2"}, namespace=namespace)
    patched = autoscalers.patch(
        name="web",
        namespace=namespace,
        body={"spec": {"minReplicas": 2}},
        content_type="application/merge-patch+json",
    )
    assert patched.spec.minReplicas == 2
    assert [each.metadata.name for each in autoscalers.get(namespace=namespace).items] == ["web"]
    autoscalers.delete(name="web", namespace=namespace)
    assert autoscalers.get(namespace=namespace).items == []


def test_the_dynamic_client_reads_subresources_and_watches(untyped: dynamic.DynamicClient, namespace: str) -> None:
    """The scale of a Deployment is a resource of its own; a watch gives its changes."""
    deployments = untyped.resources.get(api_version="apps/v1", kind="Deployment")
    body = untyped.client.sanitize_for_serialization(deployment("web"))
    deployments.create(body={**body, "kind": "Deployment", "apiVersion": "apps/v1"}, namespace=namespace)
    scale = deployments.scale.patch(
        name="web",
        namespace=namespace,
        body={"spec": {"replicas": 3}},
        content_type="application/merge-patch+json",
    )
    assert scale.spec.replicas == 3
    watcher = watch.Watch()
    seen = []
    for event in deployments.watch(namespace=namespace, timeout=120, watcher=watcher):
        seen.append((event["type"], event["object"].spec.replicas))
        watcher.stop()
    assert seen == [("ADDED", 3)]


def test_the_dynamic_client_tells_conflicts(untyped: dynamic.DynamicClient, namespace: str) -> None:
    """A name that is taken is a ConflictError."""
    maps = untyped.resources.get(api_version="v1", kind="ConfigMap")
    maps.create(body={"metadata": {"name": "taken"}}, namespace=namespace)
    with pytest.raises(ConflictError):
        maps.create(body={"metadata": {"name": "taken"}}, namespace=namespace)


def test_manifests_are_created_from_a_file(api: client.ApiClient, namespace: str, tmp_path: Path) -> None:
    """A file of several documents, of several kinds, becomes objects."""
    typed = api.sanitize_for_serialization(deployment("web"))
    documents: list[Object] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}},
        {**typed, "apiVersion": "apps/v1", "kind": "Deployment"},
        {**api.sanitize_for_serialization(autoscaler("web")), "apiVersion": "autoscaling/v2"},
    ]
    documents[2]["kind"] = "HorizontalPodAutoscaler"
    manifest = tmp_path / "all.yaml"
    manifest.write_text(yaml.safe_dump_all(documents))
    utils.create_from_yaml(api, str(manifest), namespace=namespace)
    assert client.CoreV1Api(api).read_namespaced_config_map("settings", namespace).data == {"a": "b"}
    assert client.AppsV1Api(api).read_namespaced_deployment("web", namespace).spec.replicas == 1
    found = client.AutoscalingV2Api(api).list_namespaced_horizontal_pod_autoscaler(namespace)
    assert [each.metadata.name for each in found.items] == ["web"]


class Candidate:
    """One that wants to lead, in a thread of its own; it ends once it can no longer renew its Lease."""

    def __init__(self, namespace: str, name: str) -> None:
        self.leads = threading.Event()
        self._lock = LeaseLock("leader", namespace, name)
        settings = electionconfig.Config(
            self._lock, 14, 10, 1, onstarted_leading=self.leads.set, onstopped_leading=lambda: None
        )
        self._thread = threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True)
        self._thread.start()

    def fail(self) -> None:
        """Renew nothing from now on."""
        self._lock.update = lambda *_: False

    def join(self) -> None:
        """Be gone, as it has failed."""
        self._thread.join(WITHIN_S)
        disconnect(self._lock.api_instance.api_client)


@pytest.mark.slow
def test_leaders_are_elected(api: client.ApiClient, namespace: str) -> None:
    """One candidate of two leads; when it no longer renews its Lease, the other takes over."""
    client.Configuration.set_default(api.configuration)
    try:
        first = Candidate(namespace, "first")
        assert first.leads.wait(WITHIN_S)
        second = Candidate(namespace, "second")
        assert holder(api, namespace) == "first"
        first.fail()
        assert second.leads.wait(WITHIN_S)
        assert holder(api, namespace) == "second"
        second.fail()
        first.join()
        second.join()
    finally:
        client.Configuration.set_default(None)


def holder(api: client.ApiClient, namespace: str) -> str:
    """Who leads, as the Lease says."""
    lease = client.CoordinationV1Api(api).read_namespaced_lease("leader", namespace)
    name: str = lease.spec.holder_identity
    return name


def test_logs_and_commands_of_a_real_pod(up: Up) -> None:
    """Logs are read, followed, and a command runs in a container over a WebSocket."""
    with connected(up) as api:
        core = client.CoreV1Api(api)
        command = ["/bin/sh", "-c", "echo hello; sleep 60"]
        container = client.V1Container(name="main", image="busybox", command=command)
        pod = client.V1Pod(metadata=client.V1ObjectMeta(name="told"), spec=client.V1PodSpec(containers=[container]))
        core.create_namespaced_pod("default", pod)
        eventually(lambda: core.read_namespaced_pod_status("told", "default").status.phase == "Running")
        assert eventually(lambda: core.read_namespaced_pod_log("told", "default")) == "hello\n"
        session = stream.stream(
            core.connect_get_namespaced_pod_exec,
            "told",
            "default",
            command=["/bin/sh", "-c", "echo from inside; exit 3"],
            stdout=True,
            stderr=True,
            _preload_content=False,
        )
        session.run_forever(timeout=WITHIN_S)
        assert (session.read_stdout(), session.returncode) == ("from inside\n", 3)
        session.sock.shutdown()
        core.delete_namespaced_pod("told", "default", grace_period_seconds=0)
