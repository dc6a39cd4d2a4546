"""Authentication by token, and who may do what."""

import pytest
from policies import binding, index, path_rule, role, rule

from podscaler.base.errors import StatusError
from podscaler.controlplane.auth.authenticator import Authenticator
from podscaler.controlplane.auth.authorizer import Attributes, AuthorizationDecision, Authorizer
from podscaler.controlplane.registry.users import ADMIN, User

VIEWER = User("viewer", ("viewers",))
BOT = User("system:serviceaccount:n:bot", ("system:serviceaccounts", "system:serviceaccounts:n"))
POLICY = index(
    role("reader", rule("get,list", "pods,pods/log"), namespace="n"),
    role("one", rule("update", "*/scale", "*", "web")),
    role("paths", path_rule("get", "/apis,/apis/*,/healthz")),
    role("all-of-apps", rule("*", "*", "apps")),
    binding("readers", "Role/reader", "Group viewers", namespace="n"),
    binding("scalers", "ClusterRole/one", "User viewer"),
    binding("everybody", "ClusterRole/paths", "Group system:authenticated"),
    binding("bots", "ClusterRole/all-of-apps", "ServiceAccount bot", namespace="n"),
    binding("lost", "ClusterRole/gone", "User eve"),
    binding("lost-too", "Role/gone-too", "User eve", namespace="n"),
)
AUTHORIZER = Authorizer(POLICY)


@pytest.mark.parametrize(
    ("header", "user"),
    [
        pytest.param("Bearer admin-token", ADMIN, id="the admin"),
        pytest.param("bearer  view-token ", VIEWER, id="another user, oddly spelled"),
        pytest.param("Bearer wrong", None, id="an unknown token"),
        pytest.param("Bearer ", None, id="no token"),
        pytest.param("", None, id="no header"),
        pytest.param("Basic YTpi", None, id="another scheme"),
        pytest.param("Bearer \udcff", None, id="bytes that are no text"),
    ],
)
def test_user_of(header: str, user: User | None) -> None:
    """A request belongs to the user of its token, else to nobody."""
    assert Authenticator({"admin-token": ADMIN, "view-token": VIEWER}).user_of_header(header) == user


READ_LOGS = 'RBAC: allowed by RoleBinding "readers/n" of Role "reader" to Group "viewers"'
SCALE = 'RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "one" to User "viewer"'
PATHS = 'RBAC: allowed by ClusterRoleBinding "everybody" of ClusterRole "paths" to Group "system:authenticated"'
APPS = 'RBAC: allowed by RoleBinding "bots/n" of ClusterRole "all-of-apps" to ServiceAccount "bot/n"'
NO = AuthorizationDecision(allowed=False)


@pytest.mark.parametrize(
    ("user", "wanted", "expected"),
    [
        pytest.param(
            ADMIN,
            Attributes("delete", resource="pods", namespace="n"),
            AuthorizationDecision(allowed=True),
            id="masters",
        ),
        pytest.param(
            ADMIN, Attributes("get", path="/metrics"), AuthorizationDecision(allowed=True), id="masters, a path"
        ),
        pytest.param(
            VIEWER,
            Attributes("get", resource="pods", subresource="log", namespace="n", name="p"),
            AuthorizationDecision(allowed=True, reason=READ_LOGS),
            id="a subresource by name",
        ),
        pytest.param(
            VIEWER,
            Attributes("get", resource="pods", subresource="exec", namespace="n", name="p"),
            NO,
            id="another subresource",
        ),
        pytest.param(VIEWER, Attributes("watch", resource="pods", namespace="n"), NO, id="another verb"),
        pytest.param(VIEWER, Attributes("list", resource="pods", namespace="m"), NO, id="another namespace"),
        pytest.param(VIEWER, Attributes("list", resource="pods"), NO, id="all namespaces"),
        pytest.param(VIEWER, Attributes("list", group="apps", resource="pods", namespace="n"), NO, id="another group"),
        pytest.param(
            VIEWER,
            Attributes("update", group="apps", resource="deployments", subresource="scale", namespace="n", name="web"),
            AuthorizationDecision(allowed=True, reason=SCALE),
            id="the scale of the one object",
        ),
        pytest.param(
            VIEWER,
            Attributes("update", group="apps", resource="deployments", subresource="scale", namespace="n", name="db"),
            NO,
            id="the scale of another object",
        ),
        pytest.param(
            VIEWER,
            Attributes("update", group="apps", resource="deployments", namespace="n", name="web"),
            NO,
            id="a scale is not the object",
        ),
        pytest.param(
            BOT,
            Attributes("create", group="apps", resource="deployments", namespace="n"),
            AuthorizationDecision(allowed=True, reason=APPS),
            id="a service account of the binding's namespace",
        ),
        pytest.param(
            BOT,
            Attributes("create", group="apps", resource="deployments", namespace="m"),
            NO,
            id="a ClusterRole bound in a namespace counts there only",
        ),
        pytest.param(
            VIEWER,
            Attributes("get", path="/apis/apps/v1"),
            AuthorizationDecision(allowed=True, reason=PATHS),
            id="below",
        ),
        pytest.param(VIEWER, Attributes("get", path="/apisx"), NO, id="a path that looks like it"),
        pytest.param(VIEWER, Attributes("post", path="/apis"), NO, id="another method"),
        pytest.param(VIEWER, Attributes("get", path="/healthz/ping"), NO, id="below a path without a star"),
        pytest.param(
            User("eve"),
            Attributes("get", resource="pods", namespace="n"),
            AuthorizationDecision(
                allowed=False,
                reason='rbac: RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
                'role.rbac.authorization.k8s.io "gone-too" not found]',
            ),
            id="roles that are not there",
        ),
    ],
)
def test_decisions(user: User, wanted: Attributes, expected: AuthorizationDecision) -> None:
    """Masters may do everything, others what roles bound to them say; the reason names binding, role and subject."""
    assert AUTHORIZER.decide(user, wanted) == expected


@pytest.mark.parametrize(
    ("user", "wanted", "text", "details"),
    [
        pytest.param(
            VIEWER,
            Attributes("update", group="apps", resource="deployments", subresource="status", namespace="n", name="d"),
            'deployments.apps "d" is forbidden: User "viewer" cannot update resource "deployments/status" '
            'in API group "apps" in the namespace "n"',
            {"name": "d", "group": "apps", "kind": "deployments"},
            id="a subresource",
        ),
        pytest.param(
            VIEWER,
            Attributes("list", resource="namespaces"),
            'namespaces is forbidden: User "viewer" cannot list resource "namespaces" in API group "" '
            "at the cluster scope",
            {"kind": "namespaces"},
            id="a cluster-wide list",
        ),
        pytest.param(
            VIEWER,
            Attributes("get", path="/metrics"),
            'forbidden: User "viewer" cannot get path "/metrics"',
            {},
            id="a path",
        ),
        pytest.param(
            User("eve"),
            Attributes("list", resource="pods"),
            'pods is forbidden: User "eve" cannot list resource "pods" in API group "" at the cluster scope: '
            'rbac: RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found',
            {"kind": "pods"},
            id="a role that is not there",
        ),
    ],
)
def test_forbidden(user: User, wanted: Attributes, text: str, details: dict[str, str]) -> None:
    """An API error says who may not do what, where, and what is wrong with the roles."""
    with pytest.raises(StatusError) as raised:
        AUTHORIZER.authorize(user, wanted)
    assert raised.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "Forbidden",
        "details": details,
        "code": 403,
    }
