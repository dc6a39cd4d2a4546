"""The default policy, roles made of others, and that nobody gives more than they have."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import policies
import pytest
from policies import GROUP, binding, index, role, rule
from server_under_test import VIEWER_TOKEN, Running, running_server

from podscaler.base.errors import StatusError
from podscaler.controlplane.auth import policy_rules
from podscaler.controlplane.auth.authorizer import Attributes, Authorizer
from podscaler.controlplane.auth.policy_index import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, watch_policy
from podscaler.controlplane.controllers.cluster import bootstrap, role_aggregation
from podscaler.controlplane.controllers.cluster.role_aggregation import ClusterRoleAggregation
from podscaler.controlplane.registry import acting_user, users
from podscaler.controlplane.registry.registry import Registry
from podscaler.controlplane.registry.users import User
from podscaler.controlplane.storage import entries

AS_VIEWER = {"Authorization": f"Bearer {VIEWER_TOKEN}"}
RBAC = f"/apis/{GROUP}/v1"
VIEWER = 'user "viewer" (groups=["viewers" "system:authenticated"])'
LIST_PODS = Attributes("list", resource="pods", namespace="default")
CREATE_ROLES = Attributes("create", group=GROUP, resource="roles", namespace="default")
EXCESS = f"{VIEWER} is attempting to grant RBAC permissions not currently held:\n"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with the default policy; the viewer may create and update roles and bindings, and get pods."""
    async with running_server(tmp_path) as running:
        await policies.create_default_policy(running.objects)
        kinds = "roles,clusterroles,rolebindings,clusterrolebindings"
        made = role("author", rule("create,update", kinds, GROUP), rule("get", "pods", "", ""))
        await running.create(f"{RBAC}/clusterroles", made)
        await running.create(f"{RBAC}/clusterrolebindings", binding("author", "ClusterRole/author", "User viewer"))
        yield running


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            role("r", rule("get,list", "pods,nodes"), rule("get", "secrets", "", "s"), namespace="default"),
            f'roles.rbac.authorization.k8s.io "r" is forbidden: {EXCESS}'
            '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}\n'
            '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
            '{APIGroups:[""], Resources:["secrets"], ResourceNames:["s"], Verbs:["get"]}',
            id="a role",
        ),
        pytest.param(
            role("r") | {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}},
            'clusterroles.rbac.authorization.k8s.io "r" is forbidden: '
            "must have cluster-admin privileges to use the aggregationRule",
            id="a role made of others",
        ),
        pytest.param(
            binding("b", "ClusterRole/system:monitoring", "User viewer"),
            f'clusterrolebindings.rbac.authorization.k8s.io "b" is forbidden: {EXCESS}'
            '{NonResourceURLs:["/healthz/*"], Verbs:["get"]}\n'
            '{NonResourceURLs:["/livez/*"], Verbs:["get"]}\n'
            '{NonResourceURLs:["/metrics"], Verbs:["get"]}\n'
            '{NonResourceURLs:["/metrics/slis"], Verbs:["get"]}\n'
            '{NonResourceURLs:["/readyz/*"], Verbs:["get"]}',
            id="a binding",
        ),
        pytest.param(
            binding("b", "Role/gone", "User viewer", namespace="default"),
            'rolebindings.rbac.authorization.k8s.io "gone" not found',
            id="a binding to a role that is not there",
        ),
    ],
)
async def test_more_than_one_has(server: Running, obj: Any, message: str) -> None:
    """A role or binding that gives what its author does not have is refused, with what is lacking."""
    where = f"/namespaces/{obj['metadata']['namespace']}" if "namespace" in obj["metadata"] else ""
    path = f"{RBAC}{where}/{obj['kind'].lower()}s"
    assert (await server.request("POST", path, json=obj, headers=AS_VIEWER)).body["message"] == message


async def test_as_much_as_one_has(server: Running) -> None:
    """What one has can be given, in parts and in one namespace; an update may not add to it."""
    path = f"{RBAC}/namespaces/default/roles"
    mine = role("r", rule("get", "pods", "", "one"), namespace="default")
    more = role("r", rule("get", "pods,services"), namespace="default")
    created = await server.request("POST", path, json=mine, headers=AS_VIEWER)
    updated = await server.request("PUT", f"{path}/r", json=more, headers=AS_VIEWER)
    given = binding("b", "Role/r", "Group devs", namespace="default")
    bound = await server.request("POST", f"{RBAC}/namespaces/default/rolebindings", json=given, headers=AS_VIEWER)
    assert (created.status, updated.status, bound.status) == (201, 403, 201)


async def test_the_role_of_a_binding_is_fixed(server: Running) -> None:
    """A binding cannot be made to give another role."""
    await server.create(f"{RBAC}/clusterrolebindings", binding("b", "ClusterRole/view", "User eve"))
    other = binding("b", "ClusterRole/edit", "User eve")
    reply = await server.request("PUT", f"{RBAC}/clusterrolebindings/b", json=other)
    assert reply.status == 422
    assert reply.body["details"]["causes"][0]["message"].endswith("field is immutable")


async def test_the_default_policy_is_mended(server: Running) -> None:
    """What is missing comes back at the next start, additions stay, and who wants none of it is left alone."""
    registry = Registry(server.objects)
    await registry.delete(CLUSTER_ROLES, "", "system:basic-user")
    discovery = registry.get(CLUSTER_ROLES, "", "system:discovery")
    extra = {"verbs": ["get"], "nonResourceURLs": ["/mine"]}
    await registry.update(CLUSTER_ROLES, {**discovery, "rules": [extra]})
    monitoring = registry.get(CLUSTER_ROLES, "", "system:monitoring")
    monitoring["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
    await registry.update(CLUSTER_ROLES, {**monitoring, "rules": []})
    masters = registry.get(CLUSTER_ROLE_BINDINGS, "", "cluster-admin")
    await registry.update(CLUSTER_ROLE_BINDINGS, {**masters, "subjects": []})
    await bootstrap.ensure_policy(registry)
    revision = server.objects.revision
    await bootstrap.ensure_policy(registry)
    rules = registry.get(CLUSTER_ROLES, "", "system:discovery")["rules"]
    assert (
        rules[0],
        policy_rules.find_uncovered(policy_rules.rules_of({"rules": rules}), policy_rules.rules_of(discovery)),
    ) == (
        extra,
        [],
    )
    assert registry.find(CLUSTER_ROLES, "", "system:basic-user") is not None
    assert not registry.get(CLUSTER_ROLES, "", "system:monitoring").get("rules")
    assert registry.get(CLUSTER_ROLE_BINDINGS, "", "cluster-admin")["subjects"][0]["name"] == "system:masters"
    assert server.objects.revision == revision


@pytest.mark.parametrize(
    ("name", "wanted", "expected"),
    [
        pytest.param("view", LIST_PODS, True, id="view sees pods"),
        pytest.param("view", Attributes("get", resource="secrets", namespace="default"), False, id="but no secrets"),
        pytest.param("edit", LIST_PODS, True, id="edit sees what view does"),
        pytest.param("edit", Attributes("create", resource="pods", namespace="default"), True, id="and creates"),
        pytest.param("edit", CREATE_ROLES, False, id="but no roles"),
        pytest.param("admin", CREATE_ROLES, True, id="admin creates roles"),
        pytest.param("admin", LIST_PODS, True, id="admin sees pods"),
        pytest.param("admin", replace(LIST_PODS, namespace="other"), False, id="in one namespace only"),
    ],
)
async def test_roles_for_people(server: Running, name: str, wanted: Attributes, expected: bool) -> None:
    """The roles view, edit and admin are complete from the start."""
    to_eve = binding("eve", f"ClusterRole/{name}", "User eve", namespace="default")
    await server.create(f"{RBAC}/namespaces/default/rolebindings", to_eve)
    policy = watch_policy(server.objects, [CLUSTER_ROLES, *(f"{kind}.{GROUP}" for kind in ("roles", "rolebindings"))])
    assert Authorizer(policy).decide(User("eve"), wanted).allowed == expected


async def test_roles_made_of_others_follow(server: Running) -> None:
    """A ClusterRole that selects others has their rules, by name and once each, and loses them again."""
    label = {"labels": {"team": "web"}}
    parts = [role("b", rule("get", "pods"), rule("list", "pods")), role("a", rule("get", "pods"))]
    for part in parts:
        await server.create(f"{RBAC}/clusterroles", {**part, "metadata": {**part["metadata"], **label}})
    whole = role("whole") | {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"team": "web"}}]}}
    await server.create(f"{RBAC}/clusterroles", whole)
    registry = Registry(server.objects)
    controller = ClusterRoleAggregation(registry)
    await controller.sync("all")
    both = registry.get(CLUSTER_ROLES, "", "whole")["rules"]
    await registry.delete(CLUSTER_ROLES, "", "b")
    await controller.sync("all")
    assert (both, registry.get(CLUSTER_ROLES, "", "whole")["rules"]) == (
        [rule("get", "pods"), rule("list", "pods")],
        [rule("get", "pods")],
    )


def test_a_role_is_not_part_of_itself() -> None:
    """A role whose selector fits itself does not grow by its own rules."""
    own = {"aggregationRule": {"clusterRoleSelectors": [{}]}, "rules": [rule("get", "pods")]}
    assert role_aggregation.aggregated_rules(role("whole") | own, [role("whole") | own]) == []


def test_rules_of_a_user() -> None:
    """All rules come with what is wrong with roles, once each."""
    policy = index(
        role("r", rule("get", "pods")),
        binding("one", "ClusterRole/r", "User eve"),
        binding("two", "ClusterRole/gone", "User eve"),
        binding("three", "ClusterRole/gone", "User eve", namespace="n"),
    )
    rules, errors = policy.rules(User("eve"), "n")
    assert ([policy_rules.format_rule(each) for each in rules], errors) == (
        ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
        ['clusterrole.rbac.authorization.k8s.io "gone" not found'],
    )


def test_a_subject_that_a_binding_names_twice() -> None:
    """It is bound once, and no longer bound once the binding is gone."""
    policy = index(role("r", rule("get", "pods")), made := binding("one", "ClusterRole/r", "User eve", "User eve"))
    before = list(policy.grants(User("eve"), ""))
    policy.remove(entries.from_object(CLUSTER_ROLE_BINDINGS, made, 1))
    assert ([each.role for each in before], list(policy.grants(User("eve"), ""))) == ([("", "r")], [])


async def test_a_write_without_an_author_is_refused(server: Running) -> None:
    """Who writes a role must be known: a forgotten author means no rights, not all of them."""
    made = {"metadata": {"name": "any"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    with pytest.raises(StatusError, match="the author of this write is not known"):
        await server.objects.create(CLUSTER_ROLES, made)
    assert server.objects.find(CLUSTER_ROLES, "", "any") is None


async def test_controllers_give_what_they_like(server: Running) -> None:
    """What runs in the server's process acts as system:apiserver, of system:masters."""
    registry = Registry(server.objects)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    made = await registry.create(CLUSTER_ROLES, {"metadata": {"name": "any"}, "rules": rules})
    assert made["rules"] == rules


async def test_controllers_act_for_nobody_else() -> None:
    """After a controller's write the task acts for whom it did before."""
    acting_user.set_user(User("ann"))
    with acting_user.as_user(users.SYSTEM):
        assert acting_user.current() == users.SYSTEM
    assert acting_user.current() == User("ann")
