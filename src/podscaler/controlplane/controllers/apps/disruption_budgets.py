"""Computes the status of a PodDisruptionBudget from its pods; the disruption controller calls it.

A pod is healthy if it is ready, not terminating, and not being evicted. The functions are pure.

1. `minAvailable` as a number: that many of the existing pods must be healthy.
2. `minAvailable` in percent and `maxUnavailable` refer to the desired replicas of the pods' controllers (rounded up).
3. An allowed eviction counts as done until its pod is gone, or for two minutes.

Source: documentation of PodDisruptionBudget; policy/v1 PodDisruptionBudgetStatus.
Differs: a pod without a scalable controller counts as one desired pod; upstream fails the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, rfc3339
from podscaler.controlplane.controllers.deployment import rollout_bounds
from podscaler.controlplane.controllers.framework import conditions, pods

ALLOWED = "DisruptionAllowed"
EVICTION_S = 120
"""How long an allowed eviction is expected to delete its pod."""


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """The input of a status.

    Attributes:
        budget: the PodDisruptionBudget.
        selected: the pods that it selects.
        wanted: the sum of the desired replicas of their controllers.
        now_ns: the time of this sync.
    """

    budget: Object
    selected: Sequence[Object]
    wanted: int
    now_ns: int


def status(facts: BudgetFacts) -> Object:
    """The status to write."""
    generation = facts.budget["metadata"].get("generation", 0)
    disrupted = _disrupted(facts)
    healthy = sum(_is_healthy(pod) and pod["metadata"]["name"] not in disrupted for pod in facts.selected)
    expected, desired = _bounds(facts)
    allowed = max(healthy - desired, 0) if expected else 0
    before = (facts.budget.get("status") or {}).get("conditions") or []
    new = condition(allowed, generation, facts.now_ns)
    return {
        "observedGeneration": generation,
        **({"disruptedPods": disrupted} if disrupted else {}),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": conditions.with_condition(_observed(before, generation), new),
    }


def condition(allowed: int, generation: int, now_ns: int) -> Object:
    """The condition DisruptionAllowed."""
    return {
        "type": ALLOWED,
        "status": "True" if allowed else "False",
        "observedGeneration": generation,
        "lastTransitionTime": rfc3339(now_ns),
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }


def next_expiry_s(facts: BudgetFacts) -> float | None:
    """The seconds until the next allowed eviction no longer counts; None without one."""
    due = [_expires_at(at) for at in _disrupted(facts).values()]
    return (min(due) - facts.now_ns) / NANOSECONDS if due else None


def _observed(before: Sequence[Object], generation: int) -> list[Object]:
    return [{**each, "observedGeneration": generation} if each["type"] == ALLOWED else each for each in before]


def _is_healthy(pod: Object) -> bool:
    return pods.is_active(pod) and pods.is_ready(pod)


def _disrupted(facts: BudgetFacts) -> dict[str, str]:
    """The pending evictions: names of pods with the times at which they were allowed."""
    noted: dict[str, str] = (facts.budget.get("status") or {}).get("disruptedPods") or {}
    staying = {pod["metadata"]["name"] for pod in facts.selected if not pods.is_terminating(pod)}
    return {name: at for name, at in noted.items() if name in staying and _expires_at(at) > facts.now_ns}


def _expires_at(allowed_at: str) -> int:
    return instants.parse(allowed_at) + EVICTION_S * NANOSECONDS


def _bounds(facts: BudgetFacts) -> tuple[int, int]:
    """The expected number of pods, and how many of them must be healthy."""
    spec = facts.budget["spec"]
    unavailable, available = spec.get("maxUnavailable"), spec.get("minAvailable")
    if unavailable is not None:
        return facts.wanted, max(facts.wanted - _in_pods(unavailable, facts.wanted), 0)
    if isinstance(available, str):
        return facts.wanted, _in_pods(available, facts.wanted)
    return len(facts.selected), 1 if available is None else int(available)


def _in_pods(amount: int | str, wanted: int) -> int:
    """A number or percentage of `wanted` as a number of pods, rounded up."""
    return rollout_bounds.resolve(amount, 1, wanted)[0]
