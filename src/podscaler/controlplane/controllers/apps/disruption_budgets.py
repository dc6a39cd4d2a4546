"""The status of a PodDisruptionBudget from its pods; the disruption controller calls it.

Pure. A pod is healthy when it is ready, is to stay, and no eviction of it is on its way.
1. `minAvailable` as a number: so many must be healthy, out of the pods that there are.
2. `minAvailable` in percent and `maxUnavailable` are counted on what the pods' controllers want (rounded up).
3. An eviction that was allowed counts as done until its pod is gone, or two minutes have passed.
Source: documentation of PodDisruptionBudget; policy/v1 PodDisruptionBudgetStatus.
Differs: pods without a controller that scales count as one each, instead of failing the budget.
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
"""How long an allowed eviction may take to delete its pod."""


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """What a status is made of.

    Attributes:
        budget: the PodDisruptionBudget.
        selected: the pods that it selects.
        wanted: how many pods their controllers want together.
        now_ns: the instant of this sync.
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
    """The condition that says whether pods may be evicted."""
    return {
        "type": ALLOWED,
        "status": "True" if allowed else "False",
        "observedGeneration": generation,
        "lastTransitionTime": rfc3339(now_ns),
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }


def next_expiry_s(facts: BudgetFacts) -> float | None:
    """In how many seconds an eviction on its way stops counting; None where there is none."""
    due = [_expires_at(at) for at in _disrupted(facts).values()]
    return (min(due) - facts.now_ns) / NANOSECONDS if due else None


def _observed(before: Sequence[Object], generation: int) -> list[Object]:
    return [{**each, "observedGeneration": generation} if each["type"] == ALLOWED else each for each in before]


def _is_healthy(pod: Object) -> bool:
    return pods.is_active(pod) and pods.is_ready(pod)


def _disrupted(facts: BudgetFacts) -> dict[str, str]:
    """The evictions on their way: pods by name with the time at which it was allowed."""
    noted: dict[str, str] = (facts.budget.get("status") or {}).get("disruptedPods") or {}
    staying = {pod["metadata"]["name"] for pod in facts.selected if not pods.is_terminating(pod)}
    return {name: at for name, at in noted.items() if name in staying and _expires_at(at) > facts.now_ns}


def _expires_at(allowed_at: str) -> int:
    return instants.parse(allowed_at) + EVICTION_S * NANOSECONDS


def _bounds(facts: BudgetFacts) -> tuple[int, int]:
    """How many pods there should be, and how many must be healthy."""
    spec = facts.budget["spec"]
    unavailable, available = spec.get("maxUnavailable"), spec.get("minAvailable")
    if unavailable is not None:
        return facts.wanted, max(facts.wanted - _in_pods(unavailable, facts.wanted), 0)
    if isinstance(available, str):
        return facts.wanted, _in_pods(available, facts.wanted)
    return len(facts.selected), 1 if available is None else int(available)


def _in_pods(amount: int | str, wanted: int) -> int:
    """Rounded up."""
    return rollout_bounds.resolve(amount, 1, wanted)[0]
