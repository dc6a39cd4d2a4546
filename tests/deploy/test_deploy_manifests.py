"""The manifests of deploy/kustomize hold together with the program, the image and the control plane's own roles."""

import os
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

import shipped_manifests as shipped
from podscaler import __version__
from podscaler.cli.main import cli
from podscaler.controller.leaderelection import election
from podscaler.controller.server import permissions
from podscaler.controlplane.controllers.cluster import bootstrap_roles
from shipped_manifests import Grant, container, grants, of_kind, read

RBAC = read("base", "rbac.yaml")
DEPLOYMENT = read("base", "deployment.yaml")
POD = of_kind(DEPLOYMENT, "Deployment")["spec"]["template"]["spec"]


def granted(kind: str) -> set[Grant]:
    """What the only role of the kind allows."""
    return set(grants(of_kind(RBAC, kind)["rules"]))


def bootstrapped(lines: tuple[str, ...]) -> set[Grant]:
    """What the control plane's own roles allow, read from their short form."""
    found = set()
    for line in lines:
        verbs, groups, resources, *names = (part.strip().split(",") for part in line.split("|"))
        rule = {"apiGroups": groups, "resources": resources, "verbs": verbs}
        found |= set(grants([rule | ({"resourceNames": names[0]} if names else {})]))
    return found


def test_the_cluster_role_is_the_built_in_controllers_and_what_following_workloads_needs() -> None:
    """The autoscaler of `up` has the same rights; whoever has those of the built-in one needs only a few more."""
    built_in = bootstrapped(bootstrap_roles.CONTROLLER_RULES["horizontal-pod-autoscaler"])
    ours = bootstrapped(bootstrap_roles.CLUSTER_ROLES[bootstrap_roles.AUTOSCALER_ROLE])
    assert granted("ClusterRole") == built_in | ours


def test_histories_are_the_config_maps_that_up_lets_its_autoscaler_keep() -> None:
    """The same names in both."""
    ours = bootstrapped(bootstrap_roles.ROLES["kube-system", bootstrap_roles.AUTOSCALER_ROLE])
    config_maps = {grant for grant in granted("Role") if grant.resource == "configmaps"}
    assert {grant.name for grant in config_maps} == {grant.name for grant in ours}


def test_nothing_may_be_read_from_all_secrets_and_config_maps() -> None:
    """ConfigMaps and Leases only of kube-system, and by name; secrets, nodes, writes of pods not at all."""
    assert {grant.resource for grant in granted("ClusterRole") if grant.group == ""} == {
        "pods",
        "events",
        "replicationcontrollers",
    }
    unnamed = {(grant.verb, grant.resource) for grant in granted("Role") if not grant.name}
    assert unnamed == {("create", "configmaps"), ("create", "leases"), ("list", "leases"), ("watch", "leases")}


def test_what_the_controller_asks_for_at_its_start_is_granted() -> None:
    """No line in the log about a missing permission."""
    namespace = shipped.NAMESPACE
    needed = [
        *permissions.NEEDED,
        *permissions.of_pod_autoscalers(),
        *permissions.of_histories(namespace),
        *permissions.of_leases(namespace, election.NAME, is_sharded=False),
    ]
    held = granted("ClusterRole") | granted("Role")
    missing = [
        each
        for each in needed
        if not any(grant.covers(Grant(each.verb, each.group, each.shown, each.name)) for grant in held)
    ]
    assert missing == []


@pytest.mark.parametrize("path", ["base/rbac.yaml", "overlays/sharded/rbac.yaml"])
def test_each_rule_says_why(path: str) -> None:
    """Above each rule stands a comment, or a rule of the same comment."""
    lines = (shipped.KUSTOMIZE / path).read_text().splitlines()
    silent = []
    for number, line in enumerate(lines):
        if line.startswith("  - apiGroups:"):
            above = next(each for each in reversed(lines[:number]) if not re.match(r"    (  )?\S|      - ", each))
            if not above.startswith(("  # ", "  - apiGroups:")):
                silent.append(number)
    assert silent == []


def test_each_flag_is_one_that_the_controller_has() -> None:
    """A rename in the program fails here, not in somebody's cluster."""
    controller = cli.get_command(click.Context(cli), "controller")
    assert controller is not None
    known = {option for parameter in controller.params for option in parameter.opts}
    used = {argument.partition("=")[0] for argument in container(DEPLOYMENT)["args"][1:]}
    assert used - known == set()


def test_one_version_everywhere() -> None:
    """The chart installs the image of the package's version."""
    chart = yaml.safe_load((shipped.CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)
    assert container(DEPLOYMENT)["image"] == f"podscaler:{__version__}"


def test_pods_meet_the_restricted_standard() -> None:
    """No root, no privileges, nothing written to the image's file system; the namespace enforces it."""
    assert POD["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container(DEPLOYMENT)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (namespace,) = read("base", "namespace.yaml")
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert {"volumes", "hostNetwork", "hostPID", "hostIPC"} & set(POD) == set()


def test_the_user_is_the_images() -> None:
    """The number in the manifest is that of the Dockerfile."""
    (user,) = re.findall(r"^USER (\S+)$", (shipped.DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    context = POD["securityContext"]
    assert user == f"{context['runAsUser']}:{context['runAsGroup']}"


def test_probes_ask_where_the_controller_answers() -> None:
    """/healthz and /readyz, on the port of the bind address."""
    main = container(DEPLOYMENT)
    (port,) = main["ports"]
    assert f"--metrics-bind-address=0.0.0.0:{port['containerPort']}" in main["args"]
    asked = {probe: main[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")}
    assert asked == {
        "livenessProbe": {"path": "/healthz", "port": "metrics"},
        "readinessProbe": {"path": "/readyz", "port": "metrics"},
    }


def overlay(name: str) -> list[dict[str, Any]]:
    """The objects of an overlay."""
    return [obj for obj in yaml.safe_load_all(shipped.kustomized(shipped.KUSTOMIZE / name)) if obj]


def test_the_overlay_for_high_availability_has_two_controllers_that_no_drain_takes_both() -> None:
    """Two replicas, one of which may be unavailable."""
    objects = overlay("overlays/high-availability")
    assert of_kind(objects, "Deployment")["spec"]["replicas"] == 2
    assert of_kind(objects, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_the_sharded_overlay_may_use_the_leases_of_its_shares() -> None:
    """Each controller has the flag, and the permissions of the base cover no less than before."""
    objects = overlay("overlays/sharded")
    assert "--shards=8" in container(objects)["args"]
    held = set(grants(of_kind(objects, "Role")["rules"]))
    assert [grant for grant in granted("Role") if not any(each.covers(grant) for each in held)] == []
    assert Grant("delete", "coordination.k8s.io", "leases") in held


def test_another_namespace_is_two_lines_in_an_overlay_of_ones_own(tmp_path: Path) -> None:
    """All moves there but what installations share: Leases and histories, with their Role, stay in kube-system."""
    places = ("base", "state-namespace", "components/network-policy", "components/service-monitor")
    base, state, *components = (os.path.relpath(shipped.KUSTOMIZE / place, tmp_path) for place in places)
    (tmp_path / "kustomization.yaml").write_text(
        f"namespace: scaling\nresources: [{base}]\ncomponents: [{', '.join(components)}]\ntransformers: [{state}]\n"
    )
    text = shipped.kustomized(tmp_path)
    objects = [obj for obj in yaml.safe_load_all(text) if obj]
    namespaces = {obj["kind"]: obj["metadata"].get("namespace", "") for obj in objects}
    namespaced = {kind: namespace for kind, namespace in namespaces.items() if namespace}
    assert shipped.NAMESPACE not in text
    assert namespaced == {
        "Deployment": "scaling",
        "NetworkPolicy": "scaling",
        "Role": "kube-system",
        "RoleBinding": "kube-system",
        "Service": "scaling",
        "ServiceAccount": "scaling",
        "ServiceMonitor": "scaling",
    }


@pytest.mark.parametrize("place", ["base", "overlays/high-availability", "overlays/sharded"])
def test_every_installation_elects_by_the_same_lease(place: str) -> None:
    """Flags, Role and the command's own defaults name one Lease: two that are installed in two ways never both lead."""
    objects = overlay(place)
    arguments = dict(each.removeprefix("--").split("=", 1) for each in container(objects)["args"][1:])
    roles = {of_kind(objects, kind)["metadata"]["namespace"] for kind in ("Role", "RoleBinding")}
    named = {arguments.get("leader-elect-resource-namespace"), arguments.get("history-namespace"), *roles}
    assert named == {election.NAMESPACE}
    assert arguments.get("leader-elect-resource-name", election.NAME) == election.NAME


def test_the_binding_is_to_the_controllers_account() -> None:
    """The Role of kube-system is bound to the account of the controller's own namespace."""
    (subject,) = of_kind(RBAC, "RoleBinding")["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "podscaler", "namespace": shipped.NAMESPACE}
