"""What must hold of every rollout, whatever pods and autoscalers do meanwhile."""

from hypothesis import given, settings
from hypothesis import strategies as st

from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.controllers.deployment import deployment_planning, replica_sets, rollout_bounds
from podscaler.testing import workloads as build

bounds = st.one_of(st.integers(0, 5), st.integers(0, 100).map(lambda pct: f"{pct}%"))
moves = st.lists(
    st.one_of(
        st.tuples(st.just("scale"), st.integers(0, 12)),
        st.tuples(st.just("template"), st.integers(1, 4)),
        st.tuples(st.just("ready"), st.integers(0, 3)),
        st.tuples(st.just("fail"), st.integers(0, 3)),
        st.tuples(st.just("sync"), st.just(0)),
    ),
    max_size=30,
)


class Cluster:
    """A Deployment, its ReplicaSets, and a ReplicaSet controller that follows at once; pods become ready one by one."""

    def __init__(self, surge, unavailable):
        rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        self.deployment = build.deployment(replicas=3, strategy=strategy, revisionHistoryLimit=2)
        self.sets = {}
        self.now_ns = 1_767_225_600 * NANOSECONDS

    def sync(self):
        self.now_ns += NANOSECONDS
        plan = deployment_planning.plan(
            {**self.deployment, "status": dict(self.deployment["status"])},
            list(self.sets.values()),
            now_ns=self.now_ns,
            old_pods_exist=lambda _new: False,
        )
        if plan.create is not None:
            created = str(1000 + len(self.sets))
            plan.create["metadata"] |= {"uid": created, "creationTimestamp": created}
            self.sets[plan.create["metadata"]["name"]] = plan.create
        for gone in plan.delete:
            del self.sets[gone["metadata"]["name"]]
        self.deployment["status"] = plan.status
        self.follow()
        return plan

    def follow(self):
        """Pods that are too many go, unavailable ones first."""
        for one in self.sets.values():
            size = replica_sets.size(one)
            available = min(replica_sets.count(one, "availableReplicas"), size)
            one["status"] = {"replicas": size, "readyReplicas": available, "availableReplicas": available}

    def change_available(self, index, difference):
        for position, name in enumerate(sorted(self.sets)):
            one = self.sets[name]
            if position == index:
                available = replica_sets.count(one, "availableReplicas") + difference
                one["status"]["availableReplicas"] = max(0, min(available, replica_sets.size(one)))

    def move(self, kind, value):
        if kind == "scale":
            self.deployment["spec"]["replicas"] = value
        elif kind == "template":
            image = f"example.com/app:{value}"
            self.deployment["spec"]["template"] = build.pod_template({"app": "web"}, image=image)
        elif kind in ("ready", "fail"):
            self.change_available(value, 1 if kind == "ready" else -1)

    def totals(self):
        sets = self.sets.values()
        return replica_sets.total_size(sets), replica_sets.total_count(sets, "availableReplicas")


@settings(deadline=None, max_examples=150)
@given(surge=bounds, unavailable=bounds, script=moves)
def test_a_rollout_keeps_its_bounds_and_ends(surge, unavailable, script):
    """Never more than replicas + maxSurge by a step of its own, never fewer available than it may take; it ends."""
    cluster = Cluster(surge, unavailable)
    for kind, value in script:
        cluster.move(kind, value)
        size_before, available_before = cluster.totals()
        resized = any(
            one["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"]
            != str(rollout_bounds.desired_replicas(cluster.deployment))
            for one in replica_sets.active(cluster.sets.values())
        )
        cluster.sync()
        size, available = cluster.totals()
        most = rollout_bounds.desired_replicas(cluster.deployment) + rollout_bounds.max_surge(cluster.deployment)
        least = rollout_bounds.desired_replicas(cluster.deployment) - rollout_bounds.max_unavailable(cluster.deployment)
        assert size <= max(most, size_before)
        assert resized or available >= min(least, available_before)
    for _ in range(60):
        cluster.sync()
        for index in range(len(cluster.sets)):
            cluster.change_available(index, 12)
    wanted = rollout_bounds.desired_replicas(cluster.deployment)
    assert cluster.totals() == (wanted, wanted)
    assert len(replica_sets.active(cluster.sets.values())) <= 1
    assert cluster.sync().update == []
