"""Which pods go first."""

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.controllers.apps import ranking
from podscaler.testing import workloads as build

NOW = 1_767_225_600 * NANOSECONDS
HOUR_AGO = NOW - 3600 * NANOSECONDS
DAY_AGO = NOW - 86400 * NANOSECONDS


def running(name, **extra):
    """A ready pod of a day's age on node n."""
    return build.pod(name, **({"node": "n", "ready_at": DAY_AGO, "created_at": DAY_AGO} | extra))


def cost(value):
    return {"controller.kubernetes.io/pod-deletion-cost": value}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(build.pod("a"), running("b"), id="unassigned before assigned"),
        pytest.param(build.pod("a", node="n"), build.pod("b", node="n", phase="Unknown"), id="Pending before Unknown"),
        pytest.param(
            build.pod("a", node="n", phase="Unknown"),
            build.pod("b", node="n", phase="Running"),
            id="Unknown before Running",
        ),
        pytest.param(build.pod("a", node="n", phase="Running"), running("b"), id="not ready before ready"),
        pytest.param(running("a", annotations=cost("-5")), running("b"), id="lower cost first, absent is 0"),
        pytest.param(
            running("a", annotations=cost("x")), running("b", annotations=cost("1")), id="unreadable cost is 0"
        ),
        pytest.param(running("a", node="full"), running("b"), id="doubled up before alone"),
        pytest.param(running("a", ready_at=HOUR_AGO), running("b"), id="ready more recently first"),
        pytest.param(running("a", restarts=3), running("b", restarts=1), id="more restarts first"),
        pytest.param(running("a", created_at=HOUR_AGO), running("b"), id="created more recently first"),
        pytest.param(
            running("a", ready_at=DAY_AGO),
            running("b", ready_at=DAY_AGO + NANOSECONDS),
            id="one magnitude of age: by uid",
        ),
        pytest.param(build.pod("a", node="n"), running("b", annotations=cost("-9")), id="readiness before cost"),
        pytest.param(
            running("a", annotations=cost("-1"), restarts=0), running("b", restarts=9), id="cost before restarts"
        ),
    ],
)
@pytest.mark.parametrize("swapped", [False, True], ids=["given in order", "given the other way"])
def test_the_order_of_deletion(first, second, swapped):
    """Each rule decides, whatever the order in which the pods are given."""
    given = [second, first] if swapped else [first, second]
    going = ranking.select_for_deletion(given, 1, now_ns=NOW, related_on_node={"n": 1, "full": 4})
    assert [pod["metadata"]["name"] for pod in going] == ["a"]


def test_all_of_them_are_not_ordered():
    """Nothing is to be chosen when all go."""
    assert ranking.select_for_deletion([running("b"), running("a")], 3, now_ns=NOW) == [running("b"), running("a")]


def test_restarts_of_sidecars_count_apart():
    """Containers decide first; init containers count only where they are sidecars."""
    pod = build.pod("a", restarts=2)
    pod["spec"]["initContainers"] = [{"name": "side", "restartPolicy": "Always"}, {"name": "setup"}]
    pod["status"]["initContainerStatuses"] = [
        {"name": "side", "restartCount": 4},
        {"name": "setup", "restartCount": 9},
    ]
    assert ranking.restart_counts(pod) == (2, 4)
