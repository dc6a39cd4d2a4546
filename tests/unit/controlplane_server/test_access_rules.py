"""Authentication by token, and who may do what."""

import pytest

from podscaler.controlplane.access.rules import Attributes, authorize, is_allowed
from podscaler.controlplane.access.tokens import Authenticator
from podscaler.controlplane.access.users import ADMIN, User
from podscaler.errors import StatusError

VIEWER = User("viewer", ("viewers",))


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
    assert Authenticator({"admin-token": ADMIN, "view-token": VIEWER}).user_of(header) == user


@pytest.mark.parametrize(
    ("user", "wanted", "expected"),
    [
        pytest.param(ADMIN, Attributes("delete", resource="pods", namespace="n", name="p"), True, id="masters"),
        pytest.param(ADMIN, Attributes("get", path="/metrics"), True, id="masters, a path"),
        pytest.param(VIEWER, Attributes("get", resource="pods", namespace="n", name="p"), False, id="a user, a pod"),
        pytest.param(VIEWER, Attributes("get", path="/apis/apps/v1"), True, id="a user, discovery"),
        pytest.param(VIEWER, Attributes("get", path="/apisx"), False, id="a user, a path that looks like it"),
        pytest.param(VIEWER, Attributes("post", path="/apis"), False, id="a user, another method"),
        pytest.param(
            VIEWER,
            Attributes("create", group="authorization.k8s.io", resource="selfsubjectaccessreviews"),
            True,
            id="a user asks about themselves",
        ),
    ],
)
def test_is_allowed(user: User, wanted: Attributes, expected: bool) -> None:
    """Masters may do everything, others discovery and reviews of themselves."""
    assert is_allowed(user, wanted) == expected


@pytest.mark.parametrize(
    ("wanted", "text", "details"),
    [
        pytest.param(
            Attributes("update", group="apps", resource="deployments", subresource="status", namespace="n", name="d"),
            'deployments.apps "d" is forbidden: User "viewer" cannot update resource "deployments/status" '
            'in API group "apps" in the namespace "n"',
            {"name": "d", "group": "apps", "kind": "deployments"},
            id="a subresource",
        ),
        pytest.param(
            Attributes("list", resource="namespaces"),
            'namespaces is forbidden: User "viewer" cannot list resource "namespaces" in API group "" '
            "at the cluster scope",
            {"kind": "namespaces"},
            id="a cluster-wide list",
        ),
        pytest.param(
            Attributes("get", path="/metrics"), 'forbidden: User "viewer" cannot get path "/metrics"', {}, id="a path"
        ),
    ],
)
def test_refusal(wanted: Attributes, text: str, details: dict[str, str]) -> None:
    """A refusal says who may not do what, where."""
    with pytest.raises(StatusError) as refused:
        authorize(VIEWER, wanted)
    assert refused.value.to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "Forbidden",
        "details": details,
        "code": 403,
    }
