"""Every type of metric at work on a real `up`: values from ConfigMaps scale simulated pods up, down and to zero."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from up_process import Up, eventually

pytestmark = pytest.mark.e2e

Object = dict[str, Any]

VERY_QUICK = ("--horizontal-pod-autoscaler-sync-period=500ms", "--metric-resolution=500ms")
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"


@pytest.fixture(scope="module")
def metrics_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One `up` with short periods; each test uses names of its own."""
    instance = Up(tmp_path_factory.mktemp("metrics") / "data", flags=VERY_QUICK).start()
    yield instance
    assert instance.stop() == 0, instance.log.read_text()


def deploy(up: Up, name: str, *, replicas: int = 1) -> None:
    """Simulated pods that request 100m CPU for each of two containers."""
    requests = {"resources": {"requests": {"cpu": "100m"}}}
    containers = [{"name": container, "image": "none", **requests} for container in ("app", "sidecar")]
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"runtimeClassName": "simulated", "containers": containers},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    up.create(DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})


def autoscale(up: Up, name: str, metric: Object, *, min_replicas: int = 1) -> None:
    """Scale the Deployment of that name by `metric`, down as readily as up."""
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": min_replicas,
        "maxReplicas": 10,
        "metrics": [metric],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }
    up.create(AUTOSCALERS, {"metadata": {"name": name}, "spec": spec})


def state(up: Up, name: str, api: str, **data: str) -> None:
    """Make a ConfigMap that states metrics."""
    up.create(CONFIG_MAPS, {"metadata": {"name": name, "labels": {"podscaler.dev/metrics": api}}, "data": data})


def change(up: Up, name: str, **data: str) -> None:
    """Change what it states."""
    up.patch(f"{CONFIG_MAPS}/{name}", {"data": data})


def await_replicas(up: Up, name: str, wanted: int) -> None:
    """Wait until the Deployment is asked for that many replicas and has them ready."""
    eventually(
        lambda: up.get(f"{DEPLOYMENTS}/{name}"),
        until=lambda found: (found["spec"]["replicas"], found["status"].get("readyReplicas", 0)) == (wanted, wanted),
    )


def condition(up: Up, name: str, type_: str) -> tuple[str, str]:
    """Status and reason of an autoscaler's condition."""
    conditions = up.get(f"{AUTOSCALERS}/{name}").get("status", {}).get("conditions", [])
    return next(((each["status"], each["reason"]) for each in conditions if each["type"] == type_), ("", ""))


def object_metric(kind: str, target: Object) -> Object:
    """A metric of an object called `shop`, or of the namespace."""
    described = {"apiVersion": "v1", "kind": kind, "name": "shop"}
    return {"type": "Object", "object": {"describedObject": described, "metric": {"name": "hits"}, "target": target}}


def external_metric(name: str, target: Object, **labels: str) -> Object:
    """An external metric, selected by its labels."""
    metric = {"name": name, "selector": {"matchLabels": labels}} if labels else {"name": name}
    return {"type": "External", "external": {"metric": metric, "target": target}}


VALUE = {"type": "Value", "value": "10"}
AVERAGE = {"type": "AverageValue", "averageValue": "10"}
PODS = {"type": "Pods", "pods": {"metric": {"name": "pods"}, "target": AVERAGE}}


@pytest.mark.parametrize(
    ("name", "metric", "api", "form"),
    [
        pytest.param("pods", PODS, "custom", "{pods: app=pods, value: N, sharedBy: app=pods}", id="Pods"),
        pytest.param(
            "object-value",
            object_metric("Service", VALUE),
            "custom",
            "{metric: hits, object: svc/shop, value: N, sharedBy: app=object-value}",
            id="Object, Value, which falls with more pods",
        ),
        pytest.param(
            "object-average",
            object_metric("Secret", AVERAGE),
            "custom",
            "{metric: hits, object: secret/shop, value: N}",
            id="Object, AverageValue",
        ),
        pytest.param(
            "namespace",
            object_metric("Namespace", AVERAGE),
            "custom",
            "{metric: hits, object: namespace, value: N}",
            id="Object, of the namespace",
        ),
        pytest.param(
            "external-value",
            external_metric("external-value", VALUE, queue="mine"),
            "external",
            "[{labels: {queue: mine}, value: N, sharedBy: app=external-value}, {labels: {queue: other}, value: 1000}]",
            id="External, Value, with a selector",
        ),
        pytest.param("external-average", external_metric("external-average", AVERAGE), "external", "N", id="External"),
    ],
)
def test_a_metric_scales_up_and_down(metrics_up: Up, name: str, metric: Object, api: str, form: str) -> None:
    """Four times the target makes four replicas, a patch of the ConfigMap brings them down to two."""
    deploy(metrics_up, name)
    state(metrics_up, name, api, **{name: form.replace("N", "40")})
    autoscale(metrics_up, name, metric)
    await_replicas(metrics_up, name, 4)
    change(metrics_up, name, **{name: form.replace("N", "20")})
    await_replicas(metrics_up, name, 2)
    assert condition(metrics_up, name, "ScalingActive") == ("True", "ValidMetricFound")


def test_container_resources_come_from_annotations(metrics_up: Up) -> None:
    """The usage of one container of simulated pods is stated on their Deployment; the other container is busy."""

    def use(sidecar: str) -> None:
        annotations = {
            "podscaler.dev/simulated-cpu.app": "2",
            "podscaler.dev/simulated-total-cpu.sidecar": sidecar,
        }
        metrics_up.patch(f"{DEPLOYMENTS}/container", {"metadata": {"annotations": annotations}})

    deploy(metrics_up, "container")
    use("400m")
    target = {"type": "Utilization", "averageUtilization": 100}
    source = {"name": "cpu", "container": "sidecar", "target": target}
    autoscale(metrics_up, "container", {"type": "ContainerResource", "containerResource": source})
    await_replicas(metrics_up, "container", 4)
    use("200m")
    await_replicas(metrics_up, "container", 2)


def test_an_external_metric_scales_to_zero_and_back(metrics_up: Up) -> None:
    """An empty queue leaves no pods, which the condition says; work in it brings them back."""
    deploy(metrics_up, "worker", replicas=2)
    state(metrics_up, "worker", "external", jobs="0")
    autoscale(metrics_up, "worker", external_metric("jobs", AVERAGE), min_replicas=0)
    await_replicas(metrics_up, "worker", 0)
    eventually(lambda: condition(metrics_up, "worker", "ScaledToZero"), until=lambda found: found[0] == "True")
    change(metrics_up, "worker", jobs="30")
    await_replicas(metrics_up, "worker", 3)
    eventually(lambda: condition(metrics_up, "worker", "ScaledToZero")[0], until=lambda status: status == "False")


@pytest.mark.slow
def test_a_ramp_scales_as_time_passes(metrics_up: Up) -> None:
    """Nobody writes anything, and yet the value grows by five a second, and the replicas follow it."""

    def value() -> int:
        (item,) = eventually(lambda: metrics_up.find(f"{EXTERNAL}/climb"))["items"]
        return int(item["value"].removesuffix("m")) // (1000 if item["value"].endswith("m") else 1)

    deploy(metrics_up, "ramp")
    state(metrics_up, "ramp", "external", climb="ramp: {from: 10, to: 18010, over: 1h, after: 1s}")
    first = value()
    autoscale(metrics_up, "ramp", external_metric("climb", AVERAGE))
    await_replicas(metrics_up, "ramp", 10)
    assert value() > first
    sizes = [message for name, _, message in metrics_up.events() if name == "ramp" and message.startswith("New size")]
    assert len(sizes) > 1, sizes  # at most four more within 15 s


def test_a_bad_entry_is_told_and_leaves_others_alone(metrics_up: Up) -> None:
    """The ConfigMap has an event about it, the log a line, and its other entries are served."""
    state(metrics_up, "faulty", "external", fine="1", broken="{value: lots}")
    fault = 'data[broken]: value: "lots" is not a quantity: quantities must match the regular expression'
    (_, reason, message) = eventually(lambda: [each for each in metrics_up.events() if each[0] == "faulty"])[0]
    assert (reason, message.startswith(fault)) == ("InvalidMetric", True)
    eventually(lambda: f"configmap default/faulty: {fault}" in metrics_up.log.read_text())
    assert [item["value"] for item in metrics_up.get(f"{EXTERNAL}/fine")["items"]] == ["1"]
    assert metrics_up.find(f"{EXTERNAL}/broken") is None


@pytest.mark.usefixtures("kubectl_present")
def test_kubectl_states_and_reads_metrics(metrics_up: Up) -> None:
    """Metrics can be made, listed, read, changed and taken back with kubectl alone."""
    kubectl = metrics_up.kubectl
    kubectl("create", "configmap", "by-hand", "--from-literal=temperature=21.5", "--from-literal=humidity=40")
    kubectl("label", "configmap", "by-hand", "podscaler.dev/metrics=external")
    path = f"{EXTERNAL}/temperature"

    def temperature() -> str:
        done = metrics_up.run_kubectl("get", "--raw", path)
        return done.stderr if done.returncode else json.loads(done.stdout)["items"][0]["value"]

    seen = [eventually(temperature, until=lambda text: text[0].isdigit())]
    assert "temperature" in kubectl("api-resources", "--api-group=external.metrics.k8s.io", "-o", "name")
    kubectl("patch", "configmap", "by-hand", "-p", '{"data":{"temperature":"25"}}')
    seen.append(eventually(temperature, until=lambda text: text == "25"))
    kubectl("label", "configmap", "by-hand", "podscaler.dev/metrics-")
    seen.append(eventually(temperature, until=lambda text: not text[0].isdigit()))
    not_found = "Error from server (NotFound): the server could not find the metric temperature for namespaces\n"
    assert seen == ["21500m", "25", not_found]


@pytest.mark.usefixtures("kubectl_present")
def test_kubectl_reads_metrics_of_pods(metrics_up: Up) -> None:
    """`kubectl get --raw` shows a metric of pods, and discovery lists it."""
    deploy(metrics_up, "seen")
    await_replicas(metrics_up, "seen", 1)
    state(metrics_up, "seen", "custom", rate="{pods: app=seen, value: 7}")
    listed = eventually(
        lambda: metrics_up.get("/apis/custom.metrics.k8s.io/v1beta1")["resources"],
        until=lambda resources: any(each["name"] == "pods/rate" for each in resources),
    )
    assert all(each["kind"] == "MetricValueList" for each in listed)
    found = json.loads(metrics_up.kubectl("get", "--raw", f"{CUSTOM}/pods/*/rate?labelSelector=app%3Dseen"))
    (item,) = found["items"]
    assert (item["describedObject"]["kind"], item["metric"]["name"], item["value"]) == ("Pod", "rate", "7")


@pytest.mark.slow
def test_metrics_outlive_a_crash(fresh_up: Up) -> None:
    """After a crash and a restart the values are there again, from the same ConfigMaps."""
    fresh_up.start()
    state(fresh_up, "queue", "external", depth="5")
    eventually(lambda: fresh_up.find(f"{EXTERNAL}/depth"))
    fresh_up.kill()
    fresh_up.start()
    assert eventually(lambda: fresh_up.find(f"{EXTERNAL}/depth"))["items"][0]["value"] == "5"


def test_without_config_maps_the_apis_are_served_empty(fresh_up: Up) -> None:
    """Both groups are there from the start, with nothing in them."""
    fresh_up.start()
    for group in ("custom.metrics.k8s.io/v1beta2", "custom.metrics.k8s.io/v1beta1", "external.metrics.k8s.io/v1beta1"):
        assert fresh_up.get(f"/apis/{group}")["resources"] == []
