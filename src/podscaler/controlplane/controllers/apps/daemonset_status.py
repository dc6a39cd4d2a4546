"""The status of a DaemonSet from its nodes and pods; its controller calls it after each sync.

Source: apps/v1 DaemonSetStatus (API reference). Where a node has several pods, the oldest speaks for it, and during a
surge the new one as soon as it is available.
"""

from collections.abc import Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.apps.daemonset_planning import DaemonSetFacts
from podscaler.controlplane.controllers.framework import pods


def status(facts: DaemonSetFacts) -> Object:
    """The status to write, without counts of 0 that the API leaves out."""
    wanted, present = facts.wanted(), facts.by_node()
    speaking = [_speaker(facts, present[name]) for name in wanted if name in present]
    available = sum(map(facts.is_available, speaking))
    always = {
        "currentNumberScheduled": len(speaking),
        "numberMisscheduled": len(present.keys() - set(wanted)),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(map(pods.is_ready, speaking)),
    }
    sometimes = {
        "observedGeneration": facts.daemon_set["metadata"].get("generation", 0),
        "updatedNumberScheduled": sum(map(facts.is_new, speaking)),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
    new: Object = always | {name: count for name, count in sometimes.items() if count}
    before = facts.daemon_set.get("status") or {}
    return new | {name: before[name] for name in ("collisionCount", "conditions") if before.get(name)}


def next_available_s(facts: DaemonSetFacts) -> float | None:
    """In how many seconds the next ready pod becomes available by waiting alone; None where none will."""
    seconds = facts.daemon_set["spec"].get("minReadySeconds", 0)
    instants = (pods.available_at(pod, seconds) for pod in facts.owned if pods.is_active(pod))
    due = [at for at in instants if at is not None and at > facts.now_ns]
    return (min(due) - facts.now_ns) / 1e9 if due else None


def _speaker(facts: DaemonSetFacts, here: Sequence[Object]) -> Object:
    ready_new = [pod for pod in here if facts.is_new(pod) and facts.is_available(pod)]
    return (ready_new or here)[0]
