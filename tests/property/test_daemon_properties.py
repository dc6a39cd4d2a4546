"""What must hold of every plan for a DaemonSet, from whatever state it starts."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podscaler.controlplane.controllers.apps import daemonset_planning
from podscaler.controlplane.controllers.apps.daemonset_planning import DaemonSetFacts, DaemonSetPlan
from podscaler.testing import workloads as build

Object = dict[str, Any]
NOW_NS = 1_800_000_000_000_000_000
OLD, NEW = "old", "new"
NODES = ("a", "b", "c", "d", "e")


def pod(name: str, node: str, state: str, made_of: str) -> Object:
    """A pod on a node in that state."""
    extra: dict[str, Any] = {"ready_at": NOW_NS - 10**9} if state in ("ready", "ending") else {"phase": "Running"}
    extra |= {"phase": "Failed"} if state == "failed" else {}
    labels = {"app": "agent", "controller-revision-hash": made_of}
    return build.pod(name, labels=labels, node=node, deleting=state == "ending", **extra)


@st.composite
def situations(draw: st.DrawFn) -> DaemonSetFacts:
    """Some wanted nodes, some not, with up to three pods each."""
    bounds = draw(st.sampled_from([{"maxUnavailable": 1}, {"maxUnavailable": "40%"}, {"maxSurge": 2}]))
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 0, **bounds}}
    template = build.pod_template({"app": "agent"}, nodeSelector={"for": "agents"})
    chosen = draw(st.sets(st.sampled_from(NODES)))
    away = {"key": "dedicated", "effect": "NoExecute"}
    nodes = [
        {"metadata": {"name": name, "labels": {"for": "agents"}}, "spec": {} if name in chosen else {"taints": [away]}}
        for name in NODES
    ]
    states = st.tuples(st.sampled_from(["ready", "starting", "ending", "failed"]), st.sampled_from([OLD, NEW]))
    owned = [
        pod(f"{node}-{number}", node, *state)
        for node in NODES
        for number, state in enumerate(draw(st.lists(states, max_size=3)))
    ]
    return DaemonSetFacts(build.daemon_set(updateStrategy=rolling, template=template), nodes, owned, NEW, NOW_NS)


def carried_out(facts: DaemonSetFacts, plan: DaemonSetPlan, turn: int) -> DaemonSetFacts:
    """The facts when the plan is done, everything has started and what was to go is gone."""
    gone = {one["metadata"]["name"] for one in (*plan.ended, *plan.delete)}
    gone |= {one["metadata"]["name"] for one in facts.owned if "deletionTimestamp" in one["metadata"]}
    staying = [one for one in facts.owned if one["metadata"]["name"] not in gone]
    kept = [
        pod(one["metadata"]["name"], one["spec"]["nodeName"], "ready", OLD if not facts.is_new(one) else NEW)
        for one in staying
    ]
    made = [pod(f"{node}-z{turn:02}", node, "ready", NEW) for node in plan.create]
    return DaemonSetFacts(facts.daemon_set, facts.nodes, [*kept, *made], NEW, NOW_NS)


@given(situations())
@settings(max_examples=200, deadline=None)
def test_a_rollout_leaves_enough_nodes_served(facts: DaemonSetFacts) -> None:
    """No more wanted nodes lose their last available pod than maxUnavailable allows."""
    plan = daemonset_planning.plan(facts)
    doomed = {one["metadata"]["name"] for one in (*plan.ended, *plan.delete)}
    by_node = facts.pods_by_node()
    served, still = set(), set()
    for node in facts.eligible_nodes():
        available = [one for one in by_node.get(node, []) if facts.is_available(one)]
        served |= {node} if available else set()
        still |= {node} if any(one["metadata"]["name"] not in doomed for one in available) else set()
    rolling = facts.daemon_set["spec"]["updateStrategy"]["rollingUpdate"]
    wanted = len(facts.eligible_nodes())
    most = {"40%": -(-wanted * 40 // 100)}.get(rolling["maxUnavailable"], rolling["maxUnavailable"])
    assert still == served or wanted - len(still) <= max(most, wanted - len(served))


@given(situations())
@settings(max_examples=200, deadline=None)
def test_no_pod_is_deleted_twice_and_no_node_gets_two(facts: DaemonSetFacts) -> None:
    """One call for each pod; at most one new pod for a node, and only for a wanted one."""
    plan = daemonset_planning.plan(facts)
    doomed = [one["metadata"]["name"] for one in (*plan.ended, *plan.delete)]
    assert len(doomed) == len(set(doomed))
    assert len(plan.create) == len(set(plan.create))
    assert set(plan.create) <= set(facts.eligible_nodes())


@given(situations())
@settings(max_examples=100, deadline=None)
def test_plans_lead_to_one_new_pod_a_node(facts: DaemonSetFacts) -> None:
    """Carried out one after the other, they end with one pod of the newest template on each wanted node."""
    for turn in range(40):
        plan = daemonset_planning.plan(facts)
        if plan.is_empty and all(map(facts.is_available, facts.owned)):
            break
        facts = carried_out(facts, plan, turn)
    assert sorted(one["spec"]["nodeName"] for one in facts.owned) == sorted(facts.eligible_nodes())
    assert all(map(facts.is_new, facts.owned))
