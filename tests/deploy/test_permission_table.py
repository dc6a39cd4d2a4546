"""The table of permissions in docs/controller.md says what the shipped roles grant, neither less nor more."""

import re
from collections.abc import Iterator

import pytest

from podscaler.controller.server import permissions
from shipped_manifests import DEPLOY, Grant, grants, helm_template, of_kind, read

PAGE = DEPLOY.parent / "docs" / "controller.md"
HEADER = "| where | API group | resources | verbs | for |"
NUMBERED = re.compile(r"`([a-z-]+-)(\d\d)` to `\1(\d\d)`")
SHARDS = "with shards"
BUILT_IN = "kube-system"
DELEGATED = "cluster, with delegated authentication"


def rows() -> list[list[str]]:
    """The cells of each row."""
    _, table = PAGE.read_text().split(f"{HEADER}\n|---|---|---|---|---|\n")
    lines = table.split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def granted(row: list[str]) -> Iterator[Grant]:
    """What a row says."""
    _, groups, cell, verbs, reason = row
    assert reason, row
    resources, _, names = cell.partition(":")
    rule = {
        "apiGroups": ["" if group == "core" else group for group in groups.split(", ")],
        "resources": resources.split(", "),
        "verbs": verbs.split(", "),
        "resourceNames": _names(names),
    }
    return grants([rule])


def _names(text: str) -> list[str]:
    numbered = [
        f"{prefix}{number:02}"
        for prefix, first, last in NUMBERED.findall(text)
        for number in range(int(first), int(last) + 1)
    ]
    return re.findall(r"`([^`]+)`", NUMBERED.sub("", text)) + numbered


def said(*places: str, with_shards: bool) -> set[Grant]:
    """What the rows of these places say; those of Leases are other ones with shards."""
    return {
        grant
        for row in rows()
        if row[0].startswith(places)
        and row[0] != DELEGATED
        and (row[1] != "coordination.k8s.io" or (SHARDS in row[0]) is with_shards)
        for grant in granted(row)
    }


@pytest.mark.parametrize(
    ("places", "kind", "path", "with_shards"),
    [
        (("cluster",), "ClusterRole", "base", False),
        (("namespace", BUILT_IN), "Role", "base", False),
        (("namespace",), "Role", "overlays/sharded", True),
    ],
    ids=["everywhere", "in a namespace", "with shards"],
)
def test_the_table_is_what_the_manifests_grant(
    places: tuple[str, ...], kind: str, path: str, *, with_shards: bool
) -> None:
    """Row by row it adds up to the rules; by default everything that is of one namespace is of kube-system."""
    assert said(*places, with_shards=with_shards) == set(grants(of_kind(read(path, "rbac.yaml"), kind)["rules"]))


def test_the_row_of_kube_system_is_what_the_chart_grants_there() -> None:
    """Where the Leases of controllers are elsewhere, nothing of the other rows is granted in kube-system."""
    objects = helm_template("--set=controller.stateNamespace=scaling")
    found = {obj["metadata"]["namespace"]: set(grants(obj["rules"])) for obj in objects if obj["kind"] == "Role"}
    assert found == {
        BUILT_IN: said(BUILT_IN, with_shards=False),
        "scaling": said("namespace", with_shards=False),
    }


def delegated() -> set[Grant]:
    """What the rows say that are for delegated authentication alone."""
    return {grant for row in rows() if row[0] == DELEGATED for grant in granted(row)}


def test_what_delegated_authentication_needs() -> None:
    """It is what the controller asks about at its start."""
    needed = permissions.of_metrics_access()
    assert delegated() == {Grant(each.verb, each.group, each.shown) for each in needed}


def test_what_the_chart_grants_for_delegated_authentication() -> None:
    """With the value two rules are added, and none without."""
    usual, more = (
        set(grants(of_kind(helm_template(*settings), "ClusterRole")["rules"]))
        for settings in ((), ("--set=metrics.authentication=delegated", "--set=metrics.tlsSecret=tls"))
    )
    assert more - usual == delegated()
