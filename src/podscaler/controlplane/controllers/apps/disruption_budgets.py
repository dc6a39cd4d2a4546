"""Computes the status of a PodDisruptionBudget from its pods; the disruption controller (`disruption`) calls it.

A pod is healthy if it is ready, not terminating, and not being evicted. The functions are pure. A new bound in the
spec: a case in `_expected_and_desired_healthy`.

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
EVICTION_TIMEOUT_S = 120
"""How long an allowed eviction is expected to delete its pod."""


@dataclass(frozen=True, slots=True)
class BudgetFacts:
    """The input of a status.

    Attributes:
        budget: the PodDisruptionBudget.
        selected: the pods that it selects.
        desired_pods: the sum of the desired replicas of their controllers.
        now_ns: the time of this sync, in nanoseconds since the epoch.
    """

    budget: Object
    selected: Sequence[Object]
    desired_pods: int
    now_ns: int


def status(facts: BudgetFacts) -> Object:
    """The status to write."""
    generation = facts.budget["metadata"].get("generation", 0)
    disrupted = _pending_evictions(facts)
    healthy = sum(_is_healthy(pod) and pod["metadata"]["name"] not in disrupted for pod in facts.selected)
    expected, desired_healthy = _expected_and_desired_healthy(facts)
    allowed = max(healthy - desired_healthy, 0) if expected else 0
    old_conditions = (facts.budget.get("status") or {}).get("conditions") or []
    new_condition = _allowed_condition(allowed, generation, facts.now_ns)
    return {
        "observedGeneration": generation,
        **({"disruptedPods": disrupted} if disrupted else {}),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired_healthy,
        "expectedPods": expected,
        "conditions": conditions.with_condition(_with_generation(old_conditions, generation), new_condition),
    }


def _allowed_condition(allowed: int, generation: int, now_ns: int) -> Object:
    """The condition DisruptionAllowed for a number of allowed evictions."""
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
    expiries_ns = [_expires_at_ns(allowed_at) for allowed_at in _pending_evictions(facts).values()]
    return (min(expiries_ns) - facts.now_ns) / NANOSECONDS if expiries_ns else None


def _with_generation(old_conditions: Sequence[Object], generation: int) -> list[Object]:
    """The conditions with the observedGeneration of DisruptionAllowed: it changes even if its status does not."""
    return [
        {**old_condition, "observedGeneration": generation} if old_condition["type"] == ALLOWED else old_condition
        for old_condition in old_conditions
    ]


def _is_healthy(pod: Object) -> bool:
    """Whether a pod is ready and not terminating."""
    return pods.is_active(pod) and pods.is_ready(pod)


def _pending_evictions(facts: BudgetFacts) -> dict[str, str]:
    """The names of pods with an allowed eviction that still counts, and when it was allowed (RFC 3339)."""
    disrupted_pods: dict[str, str] = (facts.budget.get("status") or {}).get("disruptedPods") or {}
    staying_names = {pod["metadata"]["name"] for pod in facts.selected if not pods.is_terminating(pod)}
    return {
        name: allowed_at
        for name, allowed_at in disrupted_pods.items()
        if name in staying_names and _expires_at_ns(allowed_at) > facts.now_ns
    }


def _expires_at_ns(allowed_at: str) -> int:
    """When an eviction that was allowed at a time (RFC 3339) no longer counts, in nanoseconds since the epoch."""
    return instants.parse(allowed_at) + EVICTION_TIMEOUT_S * NANOSECONDS


def _expected_and_desired_healthy(facts: BudgetFacts) -> tuple[int, int]:
    """The expected number of pods, and how many of them must be healthy (rules 1 and 2)."""
    spec = facts.budget["spec"]
    max_unavailable, min_available = spec.get("maxUnavailable"), spec.get("minAvailable")
    desired_pods = facts.desired_pods
    if max_unavailable is not None:
        return desired_pods, max(desired_pods - rollout_bounds.round_up(max_unavailable, desired_pods), 0)
    if isinstance(min_available, str):
        return desired_pods, rollout_bounds.round_up(min_available, desired_pods)
    return len(facts.selected), 1 if min_available is None else int(min_available)
