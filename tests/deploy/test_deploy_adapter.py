"""The chart's adapter: registered APIs, permissions, and the command that runs."""

from typing import Any

import pytest
import yaml

from shipped_manifests import NAMESPACE, container, helm_template

Object = dict[str, Any]
NAME = "podscaler-adapter"
RULE = {"seriesQuery": "up", "metricsQuery": "<<.Series>>"}
CUSTOM = ["v1beta2.custom.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io"]
EXTERNAL, RESOURCE = "v1beta1.external.metrics.k8s.io", "v1beta1.metrics.k8s.io"


def rendered(**adapter: Any) -> list[Object]:
    """The objects of the adapter."""
    objects = helm_template(values={"adapter": {"enabled": True, **adapter}})
    return [each for each in objects if each["metadata"]["labels"]["app.kubernetes.io/component"] == "adapter"]


def named(objects: list[Object], kind: str, name: str = NAME) -> Object:
    """The object of that kind and name."""
    [found] = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def test_it_is_for_those_who_ask() -> None:
    """By default there is no adapter, and no API is registered."""
    assert [each for each in helm_template() if each["kind"] == "APIService"] == []


def test_registered_apis() -> None:
    """Both versions of custom metrics and external metrics go to the Service; the newer version is preferred."""
    rules = {"rules": [RULE], "externalRules": [RULE]}
    found = [each["spec"] for each in rendered(config=rules) if each["kind"] == "APIService"]
    service = {"name": NAME, "namespace": NAMESPACE, "port": 443}
    common = {"groupPriorityMinimum": 100, "service": service, "insecureSkipTLSVerify": True}
    assert found == [
        {"group": "custom.metrics.k8s.io", "version": "v1beta2", "versionPriority": 200, **common},
        {"group": "custom.metrics.k8s.io", "version": "v1beta1", "versionPriority": 100, **common},
        {"group": "external.metrics.k8s.io", "version": "v1beta1", "versionPriority": 100, **common},
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"config": {"rules": [RULE]}}, CUSTOM, id="rules"),
        pytest.param({"config": {"externalRules": [RULE]}}, [EXTERNAL], id="external rules"),
        pytest.param({"metricSources": {"enabled": True}}, [EXTERNAL], id="MetricSources"),
        pytest.param({"config": {"resourceRules": {"window": "1m"}}}, [RESOURCE], id="resource rules"),
        pytest.param({"resource": {"enabled": True}}, [RESOURCE], id="kubelets"),
        pytest.param({"existingConfigMap": "mine"}, [*CUSTOM, EXTERNAL], id="rules that are not known"),
        pytest.param({"config": {"rules": [RULE]}, "apiServices": []}, [], id="none, by the value"),
        pytest.param({"apiServices": [EXTERNAL]}, [EXTERNAL], id="one, by the value"),
    ],
)
def test_what_is_registered(values: dict[str, Any], expected: list[str]) -> None:
    """What the adapter serves: another APIService would have no response but 404."""
    assert [each["metadata"]["name"] for each in rendered(**values) if each["kind"] == "APIService"] == expected


def test_a_certificate() -> None:
    """With a Secret and its authority the API server verifies the certificate."""
    objects = rendered(tlsSecret="cert", caBundle="Q0E=", apiServices=["v1beta1.metrics.k8s.io"])
    [api] = [each["spec"] for each in objects if each["kind"] == "APIService"]
    assert (api["group"], api["caBundle"], "insecureSkipTLSVerify" in api) == ("metrics.k8s.io", "Q0E=", False)
    flags = {"--tls-cert-file=/etc/podscaler/tls/tls.crt", "--tls-private-key-file=/etc/podscaler/tls/tls.key"}
    deployment = named(objects, "Deployment")
    assert flags <= set(container([deployment])["args"])
    assert [each["name"] for each in deployment["spec"]["template"]["spec"]["volumes"]] == ["rules", "tls"]


def test_rules_are_mounted() -> None:
    """The rules of the values are the file; other rules restart the pods."""
    rules = {"rules": [{"seriesQuery": "up", "metricsQuery": "<<.Series>>"}]}
    objects = rendered(config=rules)
    assert yaml.safe_load(named(objects, "ConfigMap")["data"]["config.yaml"]) == rules
    sums = [
        named(each, "Deployment")["spec"]["template"]["metadata"]["annotations"]["podscaler.dev/rules"]
        for each in (objects, rendered())
    ]
    assert sums[0] != sums[1]


def test_an_existing_config_map() -> None:
    """Rules of one's own are used, and none are made."""
    objects = rendered(existingConfigMap="mine")
    assert [each for each in objects if each["kind"] == "ConfigMap"] == []
    volumes = named(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert volumes == [{"name": "rules", "configMap": {"name": "mine"}}]


@pytest.mark.parametrize(
    ("kind", "name", "role"),
    [
        ("ClusterRoleBinding", NAME, NAME),
        ("ClusterRoleBinding", f"{NAME}-delegator", "system:auth-delegator"),
        ("RoleBinding", f"{NAME}-auth-reader", "extension-apiserver-authentication-reader"),
    ],
)
def test_its_account_is_bound(kind: str, name: str, role: str) -> None:
    """It lists objects, reviews requests and reads the authorities of the front proxy."""
    binding = named(rendered(), kind, name)
    assert binding["roleRef"]["name"] == role
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]


def test_the_built_in_controller_may_read() -> None:
    """The service account of the built-in controller reads custom and external metrics."""
    [subject] = named(rendered(), "ClusterRoleBinding", f"{NAME}-metrics-reader")["subjects"]
    assert (subject["namespace"], subject["name"]) == ("kube-system", "horizontal-pod-autoscaler")


def test_the_controllers_selector_does_not_match() -> None:
    """Pods of the adapter are not pods of the controller's Deployment."""
    pods = named(rendered(), "Deployment")["spec"]["template"]["metadata"]["labels"]
    [controller] = [each for each in helm_template() if each["kind"] == "Deployment"]
    assert not controller["spec"]["selector"]["matchLabels"].items() <= pods.items()


def test_usage_from_the_kubelets() -> None:
    """The flag, its permissions and its API come together; without it there are none of them."""
    objects = rendered(resource={"enabled": True, "flags": {"metric-resolution": "30s"}}, apiServices=[])
    [api] = [each["metadata"]["name"] for each in objects if each["kind"] == "APIService"]
    rules = named(objects, "ClusterRole")["rules"]
    assert api == "v1beta1.metrics.k8s.io"
    assert {"--resource", "--metric-resolution=30s"} <= set(container([named(objects, "Deployment")])["args"])
    assert {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]} in rules
    assert {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]} in rules
    usual = rendered()
    assert "--resource" not in container([named(usual, "Deployment")])["args"]
    assert all("nodes/metrics" not in rule["resources"] for rule in named(usual, "ClusterRole")["rules"])


def _granted(objects: list[Object]) -> dict[str, list[str]]:
    """The verbs of the adapter's ClusterRole by resource."""
    rules = named(objects, "ClusterRole")["rules"]
    return {resource: rule["verbs"] for rule in rules for resource in rule["resources"]}


SECRETS = f"{NAME}-metric-source-secrets"
SUBJECT = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}


def test_metric_sources_need_a_flag_and_permissions() -> None:
    """Without the value there is none of it; Secrets are not in this role."""
    granted = _granted(rendered(metricSources={"enabled": True, "secrets": True}))
    assert (granted["metricsources"], granted["metricsources/status"]) == (["list", "watch"], ["patch"])
    assert "secrets" not in granted
    assert not {"metricsources", "metricsources/status", "secrets"} & _granted(rendered()).keys()


@pytest.mark.parametrize(
    ("namespaces", "bindings"),
    [
        pytest.param([], [("ClusterRoleBinding", None)], id="of all namespaces"),
        pytest.param(["shop", "jobs"], [("RoleBinding", "shop"), ("RoleBinding", "jobs")], id="of some namespaces"),
    ],
)
def test_secrets_are_a_permission_of_their_own(namespaces: list[str], bindings: list[tuple[str, str | None]]) -> None:
    """They are read in the namespaces of the value, or in all."""
    sources = {"enabled": True, "secrets": True, "secretNamespaces": namespaces}
    objects = [each for each in rendered(metricSources=sources) if each["metadata"]["name"] == SECRETS]
    assert objects[0]["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    assert [(each["kind"], each["metadata"].get("namespace")) for each in objects[1:]] == bindings
    assert all((each["roleRef"]["name"], each["subjects"]) == (SECRETS, [SUBJECT]) for each in objects[1:])


@pytest.mark.parametrize("values", [{"enabled": True}, {"enabled": False, "secrets": True}, {}])
def test_without_the_value_no_secrets_are_read(values: dict[str, bool]) -> None:
    """Nothing about Secrets is granted."""
    rules = [rule for each in rendered(metricSources=values) for rule in each.get("rules", ())]
    assert all("secrets" not in rule["resources"] for rule in rules)


def _template(objects: list[Object]) -> Object:
    """The pods of the adapter's Deployment."""
    template: Object = named(objects, "Deployment")["spec"]["template"]
    return template


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodeSelector", {"kubernetes.io/os": "linux"}),
        ("tolerations", [{"key": "control-plane", "operator": "Exists"}]),
        ("affinity", {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
    ],
)
def test_where_its_pods_run(name: str, value: Any) -> None:
    """As the value says; by default anywhere."""
    assert _template(rendered(**{name: value}))["spec"][name] == value
    assert name not in _template(rendered())["spec"]


def test_its_pods_are_spread_over_nodes() -> None:
    """By default, with its own labels; the value may be empty."""
    [constraint] = _template(rendered())["spec"]["topologySpreadConstraints"]
    selected = constraint.pop("labelSelector")["matchLabels"]
    assert selected == named(rendered(), "Deployment")["spec"]["selector"]["matchLabels"]
    assert constraint == {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    assert "topologySpreadConstraints" not in _template(rendered(topologySpreadConstraints=[]))["spec"]


def test_its_disruptions_are_limited() -> None:
    """A budget for its own pods, unless the value says no."""
    budget = named(rendered(podDisruptionBudget={"maxUnavailable": "50%"}), "PodDisruptionBudget")["spec"]
    selected = named(rendered(), "Deployment")["spec"]["selector"]
    assert budget == {"maxUnavailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": selected}
    without = rendered(podDisruptionBudget={"enabled": False})
    assert [each for each in without if each["kind"] == "PodDisruptionBudget"] == []


def test_annotations_and_labels_of_its_pods() -> None:
    """Beside those of the chart; with a ConfigMap of one's own there is no checksum."""
    values = {"podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}}
    metadata = _template(rendered(**values))["metadata"]
    assert (metadata["annotations"].keys(), metadata["labels"]["c"]) == ({"podscaler.dev/rules", "a"}, "d")
    own = _template(rendered(**values, existingConfigMap="mine"))["metadata"]
    assert own["annotations"] == {"a": "b"}
    assert "annotations" not in _template(rendered(existingConfigMap="mine"))["metadata"]
