"""The status of a StatefulSet from its pods and revisions; its controller calls it after each sync.

Source: apps/v1 StatefulSetStatus (API reference); when a rolling update is over, the newest revision becomes current.
"""

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.apps import statefulset_pods
from podscaler.controlplane.controllers.apps.statefulset_planning import StatefulSetFacts
from podscaler.controlplane.controllers.framework import pods


def status(facts: StatefulSetFacts) -> Object:
    """The status to write, without counts of 0 that the API leaves out."""
    stateful_set, before = facts.stateful_set, facts.stateful_set.get("status") or {}
    current, newest = facts.current["metadata"]["name"], facts.newest["metadata"]["name"]
    staying = [statefulset_pods.revision_name(pod) for pod in facts.owned if not pods.is_terminating(pod)]
    serving = [pod for pod in facts.owned if statefulset_pods.is_serving(stateful_set, pod, facts.now_ns)]
    counts = {
        "observedGeneration": stateful_set["metadata"].get("generation", 0),
        "replicas": len(facts.owned),
        "readyReplicas": sum(pods.phase(pod) == "Running" and pods.is_ready(pod) for pod in facts.owned),
        "currentReplicas": staying.count(current),
        "updatedReplicas": staying.count(newest),
    }
    if _is_over(stateful_set, counts):
        current, counts["currentReplicas"] = newest, counts["updatedReplicas"]
    new: Object = {name: count for name, count in counts.items() if count or name == "replicas"}
    new |= {"currentRevision": current, "updateRevision": newest}
    new |= {name: before[name] for name in ("collisionCount", "conditions") if before.get(name)}
    return new | {"availableReplicas": len(serving)}


def next_available_s(facts: StatefulSetFacts) -> float | None:
    """In how many seconds the next ready pod becomes available by waiting alone; None where none will."""
    seconds = statefulset_pods.min_ready_s(facts.stateful_set)
    instants = (pods.available_at(pod, seconds) for pod in facts.owned if pods.is_active(pod))
    due = [at for at in instants if at is not None and at > facts.now_ns]
    return (min(due) - facts.now_ns) / 1e9 if due else None


def _is_over(stateful_set: Object, counts: dict[str, int]) -> bool:
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    is_rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
    return is_rolling and counts["updatedReplicas"] == counts["replicas"] == counts["readyReplicas"]
