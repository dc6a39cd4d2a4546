"""Room for maxReplicas for `podscaler doctor`: quotas with their use, LimitRanges, nodes."""

from typing import Any

import pytest

from podscaler.cli.diagnosis import capacity_checks
from podscaler.cli.diagnosis.capacity_checks import CapacityFacts
from podscaler.cli.diagnosis.findings import Area, DoctorFinding, FindingLevel
from podscaler.lint.model import reading, workloads
from podscaler.lint.model.lint_context import LintContext
from podscaler.lint.model.linted_item import DocumentOrigin
from podscaler.lint.model.workloads import Workload

Json = dict[str, Any]
PATCH = "kubectl -n shop patch hpa web --type merge -p "


def workload() -> Workload:
    """A Deployment whose pods request 500m cpu and 1Gi of memory."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    }
    items = list(reading.items(obj, DocumentOrigin()))
    found = workloads.read(items[0], LintContext(items))
    assert found is not None
    return found


def quota(hard: str, used: str, entry: str = "requests.cpu", **spec: Any) -> Json:
    return {"metadata": {"name": "small"}, "spec": {"hard": {entry: hard}} | spec, "status": {"used": {entry: used}}}


def node(cpu: str = "2", memory: str = "64Gi", *, ready: str = "True", **spec: Any) -> Json:
    conditions = [{"type": "Ready", "status": ready}]
    return {
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}, "conditions": conditions},
    }


def facts(**parts: Any) -> CapacityFacts:
    """Five of at most ten replicas; nothing else is known."""
    known: Json = {"workload": workload(), "quotas": None, "limit_ranges": None, "nodes": None}
    return CapacityFacts(namespace="shop", kubectl_name="hpa web", replicas=5, max_replicas=10, **known | parts)


def finding(level: FindingLevel, message: str, fix: str) -> DoctorFinding:
    return DoctorFinding(level, Area.CAPACITY, message, fix)


def of_quota(level: FindingLevel, room: str) -> DoctorFinding:
    return finding(
        level,
        f"ResourceQuota small has room for {room} by requests.cpu, but maxReplicas 10 needs 5 more",
        "kubectl -n shop edit resourcequota small (raise requests.cpu), or lower maxReplicas",
    )


def limit_range(most: str) -> Json:
    return {"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"memory": most}}]}}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param(facts(), (), id="nothing is known"),
        pytest.param(facts(workload=None, nodes=[]), (), id="the pods are not known"),
        pytest.param(facts(quotas=[quota("5", "2500m")]), (), id="the quota is enough"),
        pytest.param(
            facts(quotas=[quota("5", "2501m")]), (of_quota(FindingLevel.WARNING, "4 more pods"),), id="one pod too few"
        ),
        pytest.param(
            facts(quotas=[quota("5", "5")]), (of_quota(FindingLevel.ERROR, "0 more pods"),), id="the quota is used up"
        ),
        pytest.param(facts(quotas=[quota("5", "5", scopes=["Terminating"])]), (), id="a quota with scopes"),
        pytest.param(facts(quotas=[quota("0", "0", entry="services")]), (), id="a quota of something else"),
        pytest.param(facts(limit_ranges=[limit_range("1Gi")]), (), id="as much as the limit"),
        pytest.param(
            facts(limit_ranges=[limit_range("512Mi")]),
            (
                finding(
                    FindingLevel.ERROR,
                    "LimitRange small allows a container 512Mi of memory, but container main of the pod template asks "
                    "for 1Gi: no pod can be created",
                    "lower memory of container main, or kubectl -n shop edit limitrange small",
                ),
            ),
            id="more than the limit",
        ),
        pytest.param(facts(nodes=[node("3"), node("2")]), (), id="just enough nodes"),
        pytest.param(
            facts(nodes=[node("3"), node("2", unschedulable=True), node(ready="False")]),
            (
                finding(
                    FindingLevel.WARNING,
                    "the nodes have room for 6 pods of this size if they were empty, but maxReplicas is 10",
                    f'add nodes, or lower maxReplicas: {PATCH}\'{{"spec":{{"maxReplicas":6}}}}\'',
                ),
            ),
            id="nodes that are cordoned or not ready do not count",
        ),
    ],
)
def test_findings(known: CapacityFacts, expected: tuple[DoctorFinding, ...]) -> None:
    """Certain lacks of room, each with what to do."""
    assert capacity_checks.check(known).findings == expected


def test_the_section_has_the_use() -> None:
    """Quotas with what is used, and nodes."""
    known = facts(quotas=[quota("8", "2500m"), quota("5", "0", scopes=["BestEffort"])], nodes=[node("20"), node()])
    lines = capacity_checks.check(known).section.lines
    assert [(each.label, each.text) for each in lines] == [
        ("now", "5 of at most 10 replicas"),
        ("quota small", "requests.cpu: 2500m of 8 used, room for 11 more pods"),
        ("quota small", "has scopes, and is not considered"),
        ("nodes", "2 of 2 nodes usable, room for 44 such pods if empty"),
    ]
