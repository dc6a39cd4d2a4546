"""Each verb over HTTP: refused to who lacks it, granted to who has it and nothing else."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import policies
import pytest
from policies import GROUP, binding, path_rule, role, rule
from server_under_test import CONFIG_MAPS, VIEWER_TOKEN, Running, config_map, running_server

AS_VIEWER = {"Authorization": f"Bearer {VIEWER_TOKEN}"}
RBAC = f"/apis/{GROUP}/v1"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    """A server with the roles and bindings of every cluster, and one ConfigMap."""
    async with running_server(tmp_path) as running:
        await policies.create_default_policy(running.objects)
        await running.create(CONFIG_MAPS, config_map("a", key="value"))
        yield running


@dataclass(frozen=True)
class Wanted:
    """A request, the rules that let the viewer make it, and its status then."""

    method: str
    path: str
    rules: tuple[dict[str, Any], ...]
    status: int = 200
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()


MERGE = (("Content-Type", "application/merge-patch+json"),)
ROLE = role("r", rule("get", "pods"), namespace="default")
BINDING = binding("b", "ClusterRole/view", "User eve", namespace="default")
ON_MAPS = {
    verb: (rule(verb, "configmaps"),)
    for verb in ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
}


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(Wanted("GET", f"{CONFIG_MAPS}/a", ON_MAPS["get"]), id="get"),
        pytest.param(Wanted("GET", CONFIG_MAPS, ON_MAPS["list"]), id="list"),
        pytest.param(
            Wanted("GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1", ON_MAPS["watch"]),
            id="watch",
        ),
        pytest.param(Wanted("POST", CONFIG_MAPS, ON_MAPS["create"], 201, config_map("b")), id="create"),
        pytest.param(Wanted("PUT", f"{CONFIG_MAPS}/a", ON_MAPS["update"], body=config_map("a")), id="update"),
        pytest.param(Wanted("PATCH", f"{CONFIG_MAPS}/a", ON_MAPS["patch"], body={}, headers=MERGE), id="patch"),
        pytest.param(Wanted("DELETE", f"{CONFIG_MAPS}/a", ON_MAPS["delete"]), id="delete"),
        pytest.param(Wanted("DELETE", CONFIG_MAPS, ON_MAPS["deletecollection"]), id="deletecollection"),
        pytest.param(
            Wanted("GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name=a", (rule("list", "configmaps", "", "a"),)),
            id="list of the one object that a rule names",
        ),
        pytest.param(
            Wanted(
                "GET",
                "/apis",
                (rule("impersonate", "users", "", "eve"),),
                headers=(("Impersonate-User", "eve"),),
            ),
            id="impersonate",
        ),
        pytest.param(
            Wanted(
                "GET",
                f"{CONFIG_MAPS}/a",
                (
                    rule("impersonate-on:user-info:get", "configmaps"),
                    rule("impersonate:user-info", "users", "authentication.k8s.io", "admin-of-maps"),
                ),
                headers=(("Impersonate-User", "admin-of-maps"),),
            ),
            id="impersonate, constrained",
        ),
        pytest.param(
            Wanted(
                "POST",
                f"{RBAC}/namespaces/default/roles",
                (rule("create,escalate", "roles", GROUP),),
                201,
                ROLE,
            ),
            id="escalate",
        ),
        pytest.param(
            Wanted(
                "POST",
                f"{RBAC}/namespaces/default/rolebindings",
                (rule("create", "rolebindings", GROUP), rule("bind", "clusterroles", GROUP, "view")),
                201,
                BINDING,
            ),
            id="bind",
        ),
        pytest.param(Wanted("GET", "/", (path_rule("get", "/"),)), id="a path"),
    ],
)
async def test_a_verb_is_refused_and_granted(server: Running, wanted: Wanted) -> None:
    """Without its rule a request is 403, with it it goes through."""
    held = rule("get", "configmaps")
    maps = binding("maps", "ClusterRole/maps", "User admin-of-maps")
    for obj in (role("maps", held), maps):
        await server.create(f"{RBAC}/{obj['kind'].lower()}s", obj)
    creating = [each for each in wanted.rules if "create" in each["verbs"] and GROUP in each["apiGroups"]]
    for each in creating:  # the right to create roles and bindings alone is not enough
        alone = role("create", {**each, "verbs": ["create"]})
        await server.create(f"{RBAC}/clusterroles", alone)
        await server.create(f"{RBAC}/clusterrolebindings", binding("create", "ClusterRole/create", "User viewer"))
    arguments = {"json": wanted.body} if wanted.body is not None else {}
    headers = {**AS_VIEWER, **dict(wanted.headers)}
    refused = await server.request(wanted.method, wanted.path, headers=headers, **arguments)
    await server.create(f"{RBAC}/clusterroles", role("granted", *wanted.rules))
    await server.create(f"{RBAC}/clusterrolebindings", binding("granted", "ClusterRole/granted", "Group viewers"))
    granted = await server.request(wanted.method, wanted.path, headers=headers, **arguments)
    assert (refused.status, refused.body["reason"], granted.status) == (403, "Forbidden", wanted.status), granted.body


async def test_a_right_ends_with_its_binding(server: Running) -> None:
    """What a deleted binding or a changed role gave is gone at once."""
    await server.create(f"{RBAC}/clusterroles", role("reader", rule("get", "configmaps")))
    for name in ("one", "two"):
        await server.create(f"{RBAC}/clusterrolebindings", binding(name, "ClusterRole/reader", "User viewer"))
    statuses = [(await server.get(f"{CONFIG_MAPS}/a", headers=AS_VIEWER)).status]
    await server.request("DELETE", f"{RBAC}/clusterrolebindings/one")
    statuses.append((await server.get(f"{CONFIG_MAPS}/a", headers=AS_VIEWER)).status)
    changed = role("reader", rule("list", "configmaps"))
    await server.request("PUT", f"{RBAC}/clusterroles/reader", json=changed)
    statuses.append((await server.get(f"{CONFIG_MAPS}/a", headers=AS_VIEWER)).status)
    await server.request("DELETE", f"{RBAC}/clusterrolebindings/two")
    statuses.append((await server.get(CONFIG_MAPS, headers=AS_VIEWER)).status)
    assert statuses == [200, 200, 403, 403]


async def test_exec_over_websocket_needs_create(server: Running) -> None:
    """The right to get pods/exec alone opens no WebSocket: that is a create, as the POST is."""
    await server.create(f"{RBAC}/clusterroles", role("getter", rule("get", "pods/exec")))
    await server.create(f"{RBAC}/clusterrolebindings", binding("getter", "ClusterRole/getter", "User viewer"))
    reply = await server.get("/api/v1/namespaces/default/pods/p/exec?command=x", headers=AS_VIEWER)
    assert (reply.status, reply.body["message"]) == (
        403,
        'pods "p" is forbidden: User "viewer" cannot create resource "pods/exec" in API group "" '
        'in the namespace "default"',
    )


@pytest.mark.parametrize(
    ("headers", "status", "message"),
    [
        pytest.param(
            {"Impersonate-Group": "g"},
            400,
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} '
            "without impersonating a user name",
            id="a group of nobody",
        ),
        pytest.param(
            {"Impersonate-User": "bob"},
            403,
            'configmaps "a" is forbidden: User "viewer" cannot impersonate-on:user-info:get resource "configmaps" '
            'in API group "" in the namespace "default"',
            id="a user",
        ),
        pytest.param(
            {"Impersonate-User": "system:serviceaccount:default:bot"},
            403,
            'configmaps "a" is forbidden: User "viewer" cannot impersonate-on:serviceaccount:get resource '
            '"configmaps" in API group "" in the namespace "default"',
            id="a service account",
        ),
        pytest.param(
            {"Impersonate-User": "system:serviceaccount:default:bot", "Impersonate-Uid": "1"},
            403,
            'serviceaccounts "bot" is forbidden: User "viewer" cannot impersonate resource "serviceaccounts" '
            'in API group "" in the namespace "default"',
            id="a service account with a uid: the legacy way only",
        ),
        pytest.param(
            {"Impersonate-User": "system:node:n1"},
            403,
            'configmaps "a" is forbidden: User "viewer" cannot impersonate-on:arbitrary-node:get resource '
            '"configmaps" in API group "" in the namespace "default"',
            id="a node",
        ),
    ],
)
async def test_refused_impersonation(server: Running, headers: dict[str, str], status: int, message: str) -> None:
    """The API error is that of the most specific way to act for somebody."""
    reply = await server.get(f"{CONFIG_MAPS}/a", headers=AS_VIEWER | headers)
    assert (reply.status, reply.body["message"]) == (status, message)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(
            {"nonResourceAttributes": {"verb": "get", "path": "/apis"}},
            {
                "allowed": True,
                "reason": 'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" '
                'to Group "system:authenticated"',
            },
            id="a path",
        ),
        pytest.param({"resourceAttributes": {"verb": "get", "resource": "pods"}}, {"allowed": False}, id="refused"),
    ],
)
async def test_may_i(server: Running, body: Any, status: Any) -> None:
    """A review says whether, and by which binding."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    reply = await server.request("POST", path, json={"spec": body}, headers=AS_VIEWER)
    assert (reply.status, reply.body["status"]) == (201, status)


AUTHORIZATION = "/apis/authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        pytest.param(
            f"{AUTHORIZATION}/selfsubjectaccessreviews",
            {"spec": {}},
            '.authorization.k8s.io "" is invalid: spec: Invalid value: null: '
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            id="about nothing",
        ),
        pytest.param(
            f"{AUTHORIZATION}/subjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "get"}}},
            '.authorization.k8s.io "" is invalid: spec.user: Invalid value: "": '
            "at least one of user or group must be specified",
            id="about nobody",
        ),
        pytest.param(
            f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews",
            {"spec": {"user": "eve", "resourceAttributes": {"verb": "get", "namespace": "other"}}},
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": '
            "must match metadata.namespace",
            id="about another namespace",
        ),
        pytest.param(
            f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {}}, "no namespace on request", id="rules of nowhere"
        ),
        pytest.param(
            "/apis/authentication.k8s.io/v1/tokenreviews",
            {"spec": {}},
            "token is required for TokenReview in authentication",
            id="no token",
        ),
    ],
)
async def test_faulty_reviews(server: Running, path: str, body: Any, message: str) -> None:
    """Questions that cannot be answered are refused in upstream's words."""
    assert (await server.request("POST", path, json=body)).body["message"] == message


async def test_groups_of_a_review_are_those_it_states(server: Running) -> None:
    """Nobody is taken to be authenticated in a review about others, unless it says so."""
    attributes = {"verb": "get", "path": "/apis"}
    answers = []
    for groups in (["devs"], ["system:authenticated"]):
        spec = {"user": "eve", "groups": groups, "nonResourceAttributes": attributes}
        reply = await server.request("POST", f"{AUTHORIZATION}/subjectaccessreviews", json={"spec": spec})
        answers.append(reply.body["status"]["allowed"])
    assert answers == [False, True]
