"""The Helm chart renders what its values say and refuses what they cannot mean; kustomize's files come from it."""

import shutil
from pathlib import Path
from typing import Any

import deploy_manifests
import pytest
import yaml

from real_programs import real_program
from shipped_manifests import CHART, DEPLOY, NAMESPACE, Grant, container, grants, helm_template, of_kind, run_helm

DIGEST = f"sha256:{'0' * 64}"


def test_the_chart_passes_helms_own_lint() -> None:
    """Warnings count."""
    done = run_helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_what_deploy_holds_twice_is_the_same() -> None:
    """`make manifests` would change nothing."""
    made = deploy_manifests.generated(real_program("helm"))
    assert {name: (DEPLOY / name).read_text() for name in made} == made


def test_the_default_is_two_controllers_of_which_one_leads() -> None:
    """With a disruption budget; monitoring and network policies are for those who ask."""
    objects = helm_template()
    assert of_kind(objects, "Deployment")["spec"]["replicas"] == 2
    assert sorted(obj["kind"] for obj in objects) == [
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    ]


@pytest.mark.parametrize(
    ("values", "image"),
    [
        pytest.param({"repository": "r.io/p"}, "r.io/p:0.1.0", id="the chart's version"),
        pytest.param({"repository": "r.io/p", "tag": "x"}, "r.io/p:x", id="a tag"),
        pytest.param({"repository": "r.io/p", "tag": "x", "digest": DIGEST}, f"r.io/p@{DIGEST}", id="a digest wins"),
    ],
)
def test_the_image(values: dict[str, str], image: str) -> None:
    """Repository with tag or digest."""
    assert container(helm_template(values={"image": values}))["image"] == image


@pytest.mark.parametrize(
    ("values", "arguments"),
    [
        pytest.param({"flags": {"feature-gates": "A=true,B=false"}}, {"--feature-gates=A=true,B=false"}, id="text"),
        pytest.param({"flags": {"kube-api-qps": 20}}, {"--kube-api-qps=20"}, id="a number"),
        pytest.param({"flags": {"x-tolerance": 0.05}}, {"--x-tolerance=0.05"}, id="a fraction"),
        pytest.param({"shards": 4}, {"--shards=4"}, id="shares"),
        pytest.param({"history": "memory"}, {"--history=memory"}, id="histories forgotten"),
        pytest.param({"kinds": ["hpa"]}, {"--autoscaler-kinds=hpa"}, id="the built-in kind alone"),
        pytest.param({"extraArgs": ["-v", "--react-to-changes"]}, {"-v", "--react-to-changes"}, id="more flags"),
        pytest.param({"logFormat": "text"}, {"--log-format=text"}, id="logs for people"),
    ],
)
def test_values_become_flags(values: dict[str, Any], arguments: set[str]) -> None:
    """Each exactly once."""
    found = container(helm_template(values={"controller": values}))["args"]
    assert arguments <= set(found)
    assert len(found) == len({argument.partition("=")[0] for argument in found})


def test_traces_have_an_endpoint_or_no_flag() -> None:
    """Off by default."""
    assert "--otlp-endpoint" not in " ".join(container(helm_template())["args"])
    traced = helm_template("--set=tracing.otlpEndpoint=http://collector:4318")
    assert "--otlp-endpoint=http://collector:4318" in container(traced)["args"]


def test_https_is_served_probed_and_scraped_alike() -> None:
    """A Secret's files, where the flags say, and the scheme everywhere."""
    objects = helm_template("--set=metrics.tlsSecret=cert,metrics.serviceMonitor.enabled=true")
    main = container(objects)
    (mount,) = main["volumeMounts"]
    files = [each.partition("=")[2] for each in main["args"] if each.startswith("--tls-")]
    assert files == [f"{mount['mountPath']}/tls.crt", f"{mount['mountPath']}/tls.key"]
    assert {main[probe]["httpGet"]["scheme"] for probe in ("livenessProbe", "readinessProbe")} == {"HTTPS"}
    assert of_kind(objects, "ServiceMonitor")["spec"]["endpoints"][0]["scheme"] == "https"
    assert of_kind(objects, "Deployment")["spec"]["template"]["spec"]["volumes"] == [
        {"name": mount["name"], "secret": {"secretName": "cert"}}
    ]


def test_the_api_server_may_say_who_reads_the_metrics() -> None:
    """The flag, and Prometheus' own token; without HTTPS tokens would be sent in the clear, which is refused."""
    delegated = "--set=metrics.authentication=delegated"
    objects = helm_template(delegated, "--set=metrics.tlsSecret=cert,metrics.serviceMonitor.enabled=true")
    assert "--metrics-authentication=delegated" in container(objects)["args"]
    (endpoint,) = of_kind(objects, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"
    done = run_helm("template", "podscaler", str(CHART), delegated)
    assert (done.returncode, "metrics.authentication=delegated needs metrics.tlsSecret" in done.stderr) == (1, True)


def test_permissions_follow_the_values() -> None:
    """What is switched off needs no right, and scaling can be limited to the groups that are wanted."""
    objects = helm_template(
        values={
            "controller": {"kinds": ["hpa"], "history": "memory", "metricSources": {"enabled": False}},
            "rbac": {"scalableGroups": ["", "apps"]},
        }
    )
    wide = set(grants(of_kind(objects, "ClusterRole")["rules"]))
    assert {grant.group for grant in wide if grant.resource == "*/scale"} == {"", "apps"}
    assert "podscaler.dev" not in {grant.group for grant in wide}
    assert set(grants(of_kind(objects, "Role")["rules"])) == {
        *(Grant(verb, "coordination.k8s.io", "leases") for verb in ("create", "list", "watch")),
        Grant("get", "coordination.k8s.io", "leases", "podscaler-controller"),
        Grant("update", "coordination.k8s.io", "leases", "podscaler-controller"),
        Grant("get", "coordination.k8s.io", "leases", "kube-controller-manager"),
        *(Grant(verb, "", "configmaps", "podscaler-history") for verb in ("get", "patch")),
    }


ELSEWHERE = "--set=controller.stateNamespace=scaling"
BUILT_IN_LEASE = Grant("get", "coordination.k8s.io", "leases", "kube-controller-manager")


def roles(*settings: str) -> dict[str, set[Grant]]:
    """What each Role grants that is bound to the controller's account, by the namespace of both."""
    objects = helm_template(*settings)
    granted = {
        (obj["metadata"]["namespace"], obj["metadata"]["name"]): set(grants(obj["rules"]))
        for obj in objects
        if obj["kind"] == "Role"
    }
    account = [{"kind": "ServiceAccount", "name": "podscaler", "namespace": NAMESPACE}]
    bindings = [obj for obj in objects if obj["kind"] == "RoleBinding" and obj["subjects"] == account]
    bound = {(obj["metadata"]["namespace"], obj["roleRef"]["name"]) for obj in bindings}
    assert len(bound) == len(granted)
    return {namespace: granted[namespace, name] for namespace, name in bound}


@pytest.mark.parametrize("shards", [0, 4], ids=["a leader", "shards"])
def test_the_lease_of_the_built_in_controller_is_in_kube_system(shards: int) -> None:
    """Where the other Leases are elsewhere, a Role of its own allows to read it, and nothing else."""
    found = roles(ELSEWHERE, f"--set=controller.shards={shards}")
    assert (found["kube-system"], BUILT_IN_LEASE in found["scaling"]) == ({BUILT_IN_LEASE}, False)


def test_no_role_is_made_in_kube_system_where_that_is_not_allowed() -> None:
    """The chart can be installed by somebody who may not make one there."""
    assert list(roles(ELSEWHERE, "--set=rbac.builtInLease=false")) == ["scaling"]


def test_beside_the_built_in_controller_nothing_of_its_is_written() -> None:
    """Who looks after PodAutoscalers alone may read the others, to see who scales the same target."""
    objects = helm_template("--set=controller.kinds={podautoscaler}")
    wide = set(grants(of_kind(objects, "ClusterRole")["rules"]))
    assert {grant.resource for grant in wide if grant.group == "autoscaling"} == {"horizontalpodautoscalers"}
    assert Grant("update", "podscaler.dev", "podautoscalers/status") in wide


def test_shares_need_leases_whose_names_are_not_known_before() -> None:
    """Each member has one of its own, and removes those of members that are gone; in this namespace alone."""
    objects = helm_template("--set=controller.shards=4")
    leases = {grant for grant in grants(of_kind(objects, "Role")["rules"]) if grant.resource == "leases"}
    assert leases == {
        Grant(verb, "coordination.k8s.io", "leases") for verb in ["create", "delete", "get", "list", "update", "watch"]
    }


def test_the_definitions_come_with_the_chart() -> None:
    """Helm installs what lies in crds/ first."""
    done = run_helm("show", "crds", str(CHART))
    names = {obj["metadata"]["name"] for obj in yaml.safe_load_all(done.stdout) if obj}
    assert names == {"podautoscalers.podscaler.dev", "metricsources.podscaler.dev"}


SECRETS = "podscaler-metric-source-secrets"
GET_SECRETS = Grant("get", "", "secrets")


def test_secrets_are_read_only_where_that_is_asked_for() -> None:
    """By default no rule names them."""
    default = [grant for obj in helm_template() for grant in grants(obj.get("rules") or [])]
    assert GET_SECRETS not in default
    objects = helm_template("--set=controller.metricSources.secrets=true")
    named = {obj["kind"]: obj for obj in objects if obj["metadata"]["name"] == SECRETS}
    assert set(grants(named["ClusterRole"]["rules"])) == {GET_SECRETS}
    assert named["ClusterRoleBinding"]["roleRef"]["name"] == SECRETS


def test_secrets_can_be_those_of_a_few_namespaces() -> None:
    """A RoleBinding in each, and none for the cluster."""
    objects = helm_template(
        "--set=controller.metricSources.secrets=true", "--set=controller.metricSources.secretNamespaces={shop,jobs}"
    )
    bound = [
        (obj["kind"], obj["metadata"]["namespace"]) for obj in objects if obj.get("roleRef", {}).get("name") == SECRETS
    ]
    assert bound == [("RoleBinding", "shop"), ("RoleBinding", "jobs")]


def test_metric_sources_can_be_switched_off() -> None:
    """Then nothing about them is granted."""
    objects = helm_template("--set=controller.metricSources.enabled=false,controller.metricSources.secrets=true")
    resources = {grant.resource for obj in objects for grant in grants(obj.get("rules") or [])}
    assert not resources & {"metricsources", "metricsources/status", "secrets"}
    arguments = of_kind(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--metric-sources=false" in arguments


def test_somebody_elses_service_account_is_used_and_not_made() -> None:
    """The roles are bound to it."""
    objects = helm_template("--set=serviceAccount.create=false,serviceAccount.name=mine")
    assert "ServiceAccount" not in {obj["kind"] for obj in objects}
    assert of_kind(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == "mine"
    assert {of_kind(objects, kind)["subjects"][0]["name"] for kind in ("ClusterRoleBinding", "RoleBinding")} == {"mine"}


def test_everything_optional_can_be_switched_off() -> None:
    """A Deployment with nothing else."""
    off = ["serviceAccount.create", "rbac.create", "metrics.service", "podDisruptionBudget.enabled"]
    settings = ",".join(f"{name}=false" for name in off)
    objects = helm_template(f"--set={settings},priorityClassName=", "--set-json=topologySpreadConstraints=[]")
    assert [obj["kind"] for obj in objects] == ["Deployment"]
    assert "priorityClassName" not in objects[0]["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        pytest.param("replica=2", "additional properties 'replica' not allowed", id="a name that is not known"),
        pytest.param("metrics.port=80", "/metrics/port", id="a port that only root may have"),
        pytest.param("image.digest=latest", "/image/digest", id="a digest that is none"),
        pytest.param("controller.history=disk", "/controller/history", id="a place that is not known"),
        pytest.param("controller.kinds={vpa}", "/controller/kinds/0", id="a kind that is not known"),
        pytest.param("controller.shards=-1", "/controller/shards", id="fewer than no shares"),
        pytest.param("metrics.authentication=on", "/metrics/authentication", id="a way that is not known"),
        pytest.param("rbac.scalableGroups=null", "scalableGroups", id="no group"),
        pytest.param("tracing.otlpEndpoint=collector:4318", "/tracing/otlpEndpoint", id="no URL"),
    ],
)
def test_wrong_values_are_refused_by_name(setting: str, said: str) -> None:
    """Before anything reaches the cluster."""
    done = run_helm("template", "podscaler", str(CHART), f"--set={setting}")
    assert done.returncode == 1
    assert said in done.stderr


def test_a_chart_of_charts_may_hold_it(tmp_path: Path) -> None:
    """`global` values of a parent do not offend the schema."""
    shutil.copytree(CHART, tmp_path / "parent" / "charts" / "podscaler")
    (tmp_path / "parent" / "Chart.yaml").write_text("apiVersion: v2\nname: parent\nversion: 1.0.0\n")
    done = run_helm("template", "x", str(tmp_path / "parent"), "--set=global.team=a,podscaler.replicas=1")
    assert done.returncode == 0, done.stderr
    objects = [obj for obj in yaml.safe_load_all(done.stdout) if obj]
    assert of_kind(objects, "Deployment")["metadata"]["name"] == "x-podscaler"
