"""Roles and bindings: defaults, what is refused, and how they look in tables."""

from typing import Any

import pytest

from podscaler.api.kinds import catalog
from podscaler.api.resource import metadata

GROUP = "rbac.authorization.k8s.io"
GOOD_RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
GOOD_REFERENCE = {"apiGroup": GROUP, "kind": "Role", "name": "r"}


def faults(plural: str, **fields: Any) -> list[str]:
    """What is wrong with a new object."""
    strategy = catalog.get(f"{plural}.{GROUP}").strategy
    return [str(error) for error in strategy.validate({"metadata": {"name": "x"}, **fields}, None)]


@pytest.mark.parametrize(
    ("plural", "rule", "expected"),
    [
        pytest.param("roles", GOOD_RULE, [], id="good"),
        pytest.param("clusterroles", {"verbs": ["get"], "nonResourceURLs": ["/x"]}, [], id="paths"),
        pytest.param(
            "roles",
            {},
            [
                "rules[0].verbs: Required value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
            id="nothing",
        ),
        pytest.param(
            "roles",
            {"verbs": ["get"], "nonResourceURLs": ["/x"]},
            ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
            id="paths in a namespace",
        ),
        pytest.param(
            "clusterroles",
            GOOD_RULE | {"nonResourceURLs": ["/x"]},
            [
                'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
                "rules cannot apply to both regular resources and non-resource URLs"
            ],
            id="both",
        ),
    ],
)
def test_rules(plural: str, rule: Any, expected: list[str]) -> None:
    """A rule is about resources or about paths, and says all that belongs to it."""
    assert faults(plural, rules=[rule]) == expected


def test_aggregation() -> None:
    """A role made of others must say of which."""
    assert faults("clusterroles", aggregationRule={}) == [
        "aggregationRule.clusterRoleSelectors: Required value: "
        "at least one clusterRoleSelector required if aggregationRule is non-nil"
    ]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        pytest.param(GOOD_REFERENCE, [], id="good"),
        pytest.param(
            {"apiGroup": "x", "kind": "Rolle", "name": ""},
            [
                f'roleRef.apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
                'roleRef.kind: Unsupported value: "Rolle": supported values: "Role", "ClusterRole"',
                "roleRef.name: Required value",
            ],
            id="all wrong",
        ),
        pytest.param(
            GOOD_REFERENCE | {"name": "a/b"}, ["roleRef.name: Invalid value: \"a/b\": may not contain '/'"], id="a path"
        ),
    ],
)
def test_role_references(reference: Any, expected: list[str]) -> None:
    """A binding gives a role or cluster role, by a name that may stand in a path."""
    assert faults("rolebindings", roleRef=reference) == expected


@pytest.mark.parametrize(
    ("plural", "subject", "expected"),
    [
        pytest.param("rolebindings", {"kind": "ServiceAccount", "name": "a"}, [], id="an account of the namespace"),
        pytest.param(
            "clusterrolebindings",
            {"kind": "ServiceAccount", "name": "a"},
            ["subjects[0].namespace: Required value"],
            id="an account of no namespace",
        ),
        pytest.param(
            "rolebindings",
            {"kind": "ServiceAccount", "name": "a", "apiGroup": GROUP},
            [f'subjects[0].apiGroup: Unsupported value: "{GROUP}": supported values: ""'],
            id="an account with a group",
        ),
        pytest.param(
            "rolebindings",
            {"kind": "User", "name": "", "apiGroup": "x"},
            [
                "subjects[0].name: Required value",
                f'subjects[0].apiGroup: Unsupported value: "x": supported values: "{GROUP}"',
            ],
            id="a user of another group",
        ),
        pytest.param(
            "rolebindings",
            {"kind": "Robot", "name": "r"},
            ['subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'],
            id="another kind",
        ),
    ],
)
def test_subjects(plural: str, subject: Any, expected: list[str]) -> None:
    """Subjects are users, groups and service accounts."""
    reference = GOOD_REFERENCE | {"kind": "ClusterRole"}
    assert faults(plural, roleRef=reference, subjects=[subject]) == expected


def test_bindings_of_a_cluster_give_roles_of_a_cluster() -> None:
    """A role of a namespace cannot be had everywhere."""
    found = faults("clusterrolebindings", roleRef=GOOD_REFERENCE)
    assert found == ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"']


def test_defaults() -> None:
    """References to roles, users and groups get their API group; service accounts have none."""
    binding: Any = {
        "roleRef": {"kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "a"}],
    }
    catalog.get(f"rolebindings.{GROUP}").versions[0].default(binding)
    assert binding == {
        "roleRef": GOOD_REFERENCE,
        "subjects": [{"kind": "User", "name": "u", "apiGroup": GROUP}, {"kind": "ServiceAccount", "name": "a"}],
    }


@pytest.mark.parametrize("plural", ["roles", "clusterroles", "rolebindings", "clusterrolebindings"])
def test_names(plural: str) -> None:
    """Names may have colons and capitals, but nothing that ends a path."""
    resource = catalog.get(f"{plural}.{GROUP}")
    named = [{"metadata": {"name": name}} for name in ("system:Node", "a/b")]
    found = [[str(error) for error in metadata.validate_metadata(resource, each, None)] for each in named]
    assert found == [[], ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]]


def test_tables() -> None:
    """Roles are shown with their creation, bindings with the role and who has it."""
    created = {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "Group", "name": "g"},
        {"kind": "Group", "name": "h"},
        {"kind": "ServiceAccount", "name": "a", "namespace": "n"},
    ]
    binding = {"metadata": {"name": "b"}, "roleRef": GOOD_REFERENCE, "subjects": subjects}
    rows = [
        catalog.get(f"roles.{GROUP}").printer.row({"metadata": created}, 0),
        catalog.get(f"rolebindings.{GROUP}").printer.row(binding, 0),
    ]
    assert rows == [["x", "2026-01-01T00:00:00Z"], ["b", "Role/r", "<unknown>", "u", "g, h", "n/a"]]
