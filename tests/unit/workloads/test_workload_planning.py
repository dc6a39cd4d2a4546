"""One sync of a Deployment: what is planned."""

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.controllers.deployment import deployment_planning, progress, revisions
from podscaler.controlplane.controllers.framework import templates
from podscaler.testing import workloads as build

NOW = 1_767_225_600 * NANOSECONDS
RECREATE = {"type": "Recreate"}


def bounds(surge, unavailable):
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def noted(desired, maximum, revision=1):
    return {
        revisions.REVISION: str(revision),
        revisions.DESIRED_REPLICAS: str(desired),
        revisions.MAX_REPLICAS: str(maximum),
    }


def new_set(deployment, size, *, notes=None, **extra):
    """The ReplicaSet of the Deployment's present template."""
    label = templates.template_hash(deployment["spec"]["template"])
    template = build.pod_template({"app": "web", "pod-template-hash": label})
    annotations = noted(deployment["spec"]["replicas"], 99, revision=2) if notes is None else notes
    return build.replica_set(
        "new", size, template=template, annotations=annotations, pods=size, created_at=NOW, **extra
    )


def old_set(name, size, desired, **extra):
    """A ReplicaSet of another template."""
    extra = {"pods": size, "created_at": int(name[3:]) * NANOSECONDS, "annotations": noted(desired, 99)} | extra
    return build.replica_set(name, size, template=build.pod_template({"app": "web"}, image=name), **extra)


def planned(deployment, sets, *, old_pods=False):
    return deployment_planning.plan(deployment, sets, now_ns=NOW, old_pods_exist=lambda _new: old_pods)


def sizes(plan):
    return {one["metadata"]["name"]: one["spec"]["replicas"] for one in plan.update}


def test_the_first_replica_set_is_created_whole():
    """A new Deployment has nothing to spare: all pods at once, with revision 1."""
    deployment = build.deployment(replicas=3, minReadySeconds=5)
    deployment["metadata"]["annotations"] = {"kubernetes.io/change-cause": "first"}
    plan = planned(deployment, [])
    digest = templates.template_hash(deployment["spec"]["template"])
    labels = {"app": "web", "pod-template-hash": digest}
    assert plan.create == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"web-{digest}",
            "namespace": "default",
            "labels": labels,
            "annotations": {"kubernetes.io/change-cause": "first", **noted(3, 4)},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": "web",
                    "uid": "uid-web",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": 3,
            "minReadySeconds": 5,
            "selector": {"matchLabels": labels},
            "template": build.pod_template(labels),
        },
    }
    name = f"web-{digest}"
    assert plan.events == [(name, f"Scaled up replica set {name} from 0 to 3")]
    assert (plan.update, plan.delete, plan.revision, plan.requeue_after_s) == ([], [], "1", 601.0)
    assert plan.status == {
        "observedGeneration": 1,
        "terminatingReplicas": 0,
        "unavailableReplicas": 3,
        "conditions": [
            {
                "type": "Progressing",
                "status": "True",
                "lastUpdateTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "NewReplicaSetCreated",
                "message": f'Created new replica set "{name}"',
            },
            {
                "type": "Available",
                "status": "False",
                "lastUpdateTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "MinimumReplicasUnavailable",
                "message": "Deployment does not have minimum availability.",
            },
        ],
    }


def test_a_deployment_of_no_replicas_makes_an_empty_set_without_an_event():
    """There is nothing to scale."""
    plan = planned(build.deployment(replicas=0), [])
    assert (plan.create["spec"]["replicas"], plan.events) == (0, [])


@pytest.mark.parametrize(
    ("strategy", "old", "new", "expected"),
    [
        pytest.param(bounds(1, 0), (4, 4), (0, 0), {"new": 1}, id="first the surge"),
        pytest.param(bounds(1, 0), (4, 4), (1, 0), {}, id="not available: nothing may go"),
        pytest.param(bounds(1, 0), (4, 4), (1, 1), {"old1": 3}, id="available: an old one goes"),
        pytest.param(bounds(0, 1), (4, 4), (0, 0), {"old1": 3}, id="no surge: an old one goes first"),
        pytest.param(bounds(0, 1), (3, 3), (0, 0), {"new": 1}, id="then there is room for a new one"),
        pytest.param(bounds("50%", "50%"), (4, 4), (0, 0), {"new": 2}, id="half up"),
        pytest.param(bounds("50%", "50%"), (4, 4), (2, 0), {"old1": 2}, id="half down"),
        pytest.param(bounds(1, 0), (4, 1), (1, 0), {}, id="unhealthy old ones stay while new ones are not available"),
        pytest.param(bounds(1, 1), (4, 1), (1, 0), {"old1": 3}, id="unhealthy old ones go first"),
        pytest.param(bounds("100%", 0), (4, 4), (4, 4), {"old1": 0}, id="all new are there: all old go"),
        pytest.param(bounds(1, 0), (0, 0), (6, 4), {"new": 4}, id="too many new ones"),
    ],
)
def test_one_step_of_a_rolling_update(strategy, old, new, expected):
    """With 4 wanted: (size, available) of the old and the new set, and what the step resizes."""
    deployment = build.deployment(replicas=4, strategy=strategy)
    sets = [old_set("old1", old[0], 4, available=old[1]), new_set(deployment, new[0], available=new[1])]
    assert sizes(planned(deployment, sets)) == expected


def test_several_old_sets_shrink_oldest_first():
    """A rollout over a rollout: what may go is taken from the oldest sets."""
    deployment = build.deployment(replicas=6, strategy=bounds(0, 3))
    sets = [old_set("old2", 2, 6, available=2), old_set("old1", 2, 6, available=2), new_set(deployment, 2, available=2)]
    plan = planned(deployment, sets)
    assert sizes(plan) == {"old1": 0, "old2": 1}
    assert [message for _, message in plan.events] == [
        "Scaled down replica set old1 from 2 to 0",
        "Scaled down replica set old2 from 2 to 1",
    ]


def test_a_set_that_is_resized_notes_what_was_wanted():
    """So that the next change of spec.replicas is seen as one."""
    deployment = build.deployment(replicas=4, strategy=bounds(1, 0))
    plan = planned(deployment, [old_set("old1", 4, 4, available=4), new_set(deployment, 0)])
    assert plan.update[0]["metadata"]["annotations"] == noted(4, 5, revision=2)


@pytest.mark.parametrize(
    ("wanted", "sets", "expected"),
    [
        pytest.param(
            7, [("old1", 4, 5), ("new", 1, 5)], {"old1": 7, "new": 1}, id="in the middle of a rollout: shared"
        ),
        pytest.param(2, [("old1", 4, 5), ("new", 1, 5)], {"old1": 2, "new": 1}, id="down in the middle: shared"),
        pytest.param(9, [("new", 5, 5)], {"new": 9}, id="a single set takes it all"),
        pytest.param(9, [("old1", 5, 5), ("new", 0, 5)], {"old1": 9}, id="the only active one, though it is old"),
        pytest.param(0, [("old1", 4, 5), ("new", 1, 5)], {"old1": 0, "new": 0}, id="to nothing"),
        pytest.param(5, [("old1", 4, 4), ("new", 1, 5)], {"old1": 5}, id="one set is behind: it is caught up"),
    ],
)
def test_a_new_size_is_shared_and_nothing_is_rolled(wanted, sets, expected):
    """An autoscaler that changes spec.replicas in a rollout resizes the sets in proportion (maxSurge is 1)."""
    deployment = build.deployment(replicas=wanted, strategy=bounds(1, 0))
    given = [
        new_set(deployment, size, notes=noted(desired, desired + 1, 2), available=size)
        if name == "new"
        else old_set(name, size, desired, available=size, annotations=noted(desired, desired + 1))
        for name, size, desired in sets
    ]
    plan = planned(deployment, given)
    assert sizes(plan) == expected
    assert plan.create is None


def test_a_size_that_fits_already_is_noted():
    """Somebody sized the set by hand to what is wanted: else every later sync would take it for a new size."""
    deployment = build.deployment(replicas=3)
    plan = planned(deployment, [old_set("old1", 3, 2)])
    assert (plan.events, plan.update[0]["metadata"]["annotations"]) == ([], noted(3, 4))


def test_paused_nothing_is_rolled_but_sizes_follow():
    """A new template waits; a new size does not."""
    deployment = build.deployment(replicas=5, paused=True)
    plan = planned(deployment, [old_set("old1", 3, 3, available=3)])
    assert (plan.create, sizes(plan), plan.requeue_after_s) == (None, {"old1": 5}, None)
    reasons = [(one["type"], one["status"], one["reason"]) for one in plan.status["conditions"]]
    assert ("Progressing", "Unknown", "DeploymentPaused") in reasons


def test_resumed_is_told():
    """`rollout resume` starts the deadline again."""
    deployment = build.deployment(replicas=0)
    condition = {"type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused", "message": ""}
    deployment["status"]["conditions"] = [condition]
    plan = planned(deployment, [new_set(deployment, 0)])
    assert progress.find_progressing(plan.status) == {
        "type": "Progressing",
        "status": "True",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "NewReplicaSetAvailable",
        "message": 'ReplicaSet "new" has successfully progressed.',
    }


def test_a_template_of_the_past_is_taken_up_again():
    """`rollout undo`: the old set becomes the new one, with a revision above all others."""
    deployment = build.deployment(replicas=2)
    past = new_set(deployment, 0, notes=noted(2, 3, 1))
    present = old_set("old1", 2, 2, annotations=noted(2, 3, 2), available=2)
    plan = planned(deployment, [past, present])
    assert (plan.create, plan.revision, sizes(plan)) == (None, "3", {"new": 1})
    assert plan.update[0]["metadata"]["annotations"][revisions.HISTORY] == "1"


def test_min_ready_seconds_reach_the_set():
    """A change of it is no new revision."""
    deployment = build.deployment(replicas=1, minReadySeconds=7)
    plan = planned(deployment, [new_set(deployment, 1, available=1)])
    assert (plan.update[0]["spec"]["minReadySeconds"], plan.create) == (7, None)


@pytest.mark.parametrize(
    ("sets", "old_pods", "expected"),
    [
        pytest.param([("old1", 3)], True, ({"old1": 0}, False), id="first all old ones end"),
        pytest.param([("old1", 0)], True, ({}, False), id="their pods are awaited"),
        pytest.param([("old1", 0)], False, ({}, True), id="then the new set is made"),
        pytest.param([("old1", 0), ("new", 0)], True, ({}, False), id="a known template waits too"),
        pytest.param([("old1", 0), ("new", 0)], False, ({"new": 3}, False), id="a known template grows at once"),
    ],
)
def test_recreate(sets, old_pods, expected):
    """Never pods of two templates: what is resized, and whether the new set is made."""
    deployment = build.deployment(replicas=3, strategy=RECREATE)
    given = [new_set(deployment, size) if name == "new" else old_set(name, size, 3) for name, size in sets]
    plan = planned(deployment, given, old_pods=old_pods)
    assert (sizes(plan), plan.create is not None) == expected
    assert plan.create is None or plan.create["spec"]["replicas"] == 3


def test_recreate_of_several_active_sets_that_was_scaled_goes_on():
    """The strategy was changed in a rollout and then the size: the old ones end."""
    deployment = build.deployment(replicas=3, strategy=RECREATE)
    sets = [old_set("old1", 1, 2), old_set("old2", 1, 2)]
    assert sizes(planned(deployment, sets)) == {"old1": 0, "old2": 0}


def test_old_sets_beyond_the_limit_go_when_the_rollout_is_over():
    """Lowest revisions first; one that still has pods, or was not observed, is spared."""
    deployment = build.deployment(replicas=1, revisionHistoryLimit=1)
    deployment["status"] = {"updatedReplicas": 1, "replicas": 1, "availableReplicas": 1, "observedGeneration": 1}
    old = [old_set(f"old{n}", 0, 1, annotations=noted(1, 2, n), pods=int(n == 2)) for n in (4, 3, 2, 1)]
    plan = planned(deployment, [*old, new_set(deployment, 1, notes=noted(1, 2, 5), available=1)])
    assert [one["metadata"]["name"] for one in plan.delete] == ["old1", "old3"]


def test_a_deployment_that_is_being_deleted_only_gets_its_status():
    """Its ReplicaSets are the garbage collector's."""
    deployment = build.deployment(replicas=3)
    deployment["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    plan = planned(deployment, [old_set("old1", 3, 9, available=3)])
    assert (plan.create, plan.update, plan.events) == (None, [], [])
    assert plan.status["replicas"] == 3


def test_a_status_from_before_a_scale_down_lets_no_available_pod_go():
    """An old set of 4 whose status still counts 9 available pods has 4 that stay: 3 of them must."""
    deployment = build.deployment(replicas=4, strategy=bounds(2, 1))
    old = old_set("old1", 4, 4, pods=9, ready=9, available=9)
    new = new_set(deployment, 2, ready=0, available=0)
    assert sizes(planned(deployment, [old, new])).get("old1", 4) >= 3
