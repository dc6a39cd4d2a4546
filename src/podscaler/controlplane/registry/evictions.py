"""Evicts a pod: a delete that a PodDisruptionBudget can refuse.

`apiserver.handlers.subresources` calls it for `POST .../pods/NAME/eviction`; `controllers.apps.disruption` writes the
budgets' statuses. The allowed disruptions in the status are lowered before the pod is deleted, so that no two evictions
use the same one. Another condition of an eviction: in `_needs_no_disruption`, or a 429 in `_check_budget`.

Source: documentation "API-initiated Eviction"; kube-apiserver's error messages.
"""

from dataclasses import replace

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import SelectorError
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.clock import rfc3339
from podscaler.base.errors import Cause, StatusError
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.options import DeleteOptions, UpdateOptions

PODS = "pods"
BUDGETS = "poddisruptionbudgets.policy"
DISRUPTED_PODS_MAX = 2000
"""How many evictions of one budget may wait until the disruption controller has seen their pods deleted.

As upstream one more is accepted.
"""
_RETRY_AFTER_S = 10
"""When a client may try again if the status of the budget is not up to date."""
_VIOLATION_MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


async def evict(objects: Objects, namespace: str, name: str, *, options: DeleteOptions, now_ns: int) -> None:
    """Delete the pod, unless its PodDisruptionBudget forbids it.

    Args:
        objects: the stored objects.
        namespace, name: the pod.
        options: the options of the delete.
        now_ns: the time of the eviction, nanoseconds since the epoch.

    Raises:
        StatusError: 404 if there is no such pod, 409 for a failed precondition, 422 for invalid options, 403 if an
            admission plugin rejects it or too many evictions wait; 429 if the budget does not allow it now, 500 if the
            pod has several budgets; and as every write of `objects`.
    """
    pod = objects.get(PODS, namespace, name).decode()
    budgets = [] if _is_unprotected(pod) else _budgets_of(objects, pod)
    if len(budgets) > 1:
        raise api_errors.error_without_reason(_SEVERAL_BUDGETS)
    for budget in budgets:  # at most one
        if not _needs_no_disruption(pod, budget):
            await _use_disruption(objects, budget["metadata"]["name"], pod, now_ns=now_ns, is_dry_run=options.dry_run)
    if not options.dry_run:
        options = await _mark_disrupted(objects, namespace, name, options=options, now_ns=now_ns)
    await objects.delete(PODS, namespace, name, options=options)


async def _mark_disrupted(
    objects: Objects, namespace: str, name: str, *, options: DeleteOptions, now_ns: int
) -> DeleteOptions:
    """Set the condition DisruptionTarget of the pod; returns the options of the delete that follows.

    A pod that does not meet the preconditions is not changed, and the delete fails with 409. A resourceVersion
    precondition is replaced by the version after this update. Raises StatusError 404.
    """
    preconditions = options.preconditions
    is_met = False

    def mark(pod: Object) -> Object:
        nonlocal is_met  # of the last attempt, whose result is stored
        metadata = pod["metadata"]
        is_same_uid = preconditions.uid in ("", metadata["uid"])
        is_met = is_same_uid and preconditions.resource_version in ("", metadata["resourceVersion"])
        if is_met:
            _set_disruption_target(pod.setdefault("status", {}).setdefault("conditions", []), rfc3339(now_ns))
        return pod

    update = UpdateOptions("status", author=None)
    marked = await objects.update(PODS, namespace, name, mark, options=update)
    if not (is_met and preconditions.resource_version):
        return options
    return replace(options, preconditions=replace(preconditions, resource_version=str(marked.revision)))


def _set_disruption_target(conditions: list[Object], now: str) -> None:
    """Set the condition DisruptionTarget to True, in place; `now` is an RFC 3339 time."""
    reason = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    existing = next((condition for condition in conditions if condition.get("type") == "DisruptionTarget"), None)
    if existing is None:
        added = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
        conditions.append(added | reason)
        return
    if existing.get("status") != "True":
        existing["lastTransitionTime"] = now
    existing.update(status="True", **reason)


def _is_unprotected(pod: Object) -> bool:
    """Whether budgets do not apply: the pod has ended or not started, or is being deleted already."""
    phase = (pod.get("status") or {}).get("phase", "")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _budgets_of(objects: Objects, pod: Object) -> list[Object]:
    """The PodDisruptionBudgets in the pod's namespace that select it."""
    labels = pod["metadata"].get("labels") or {}
    budget_entries = objects.list(BUDGETS, pod["metadata"]["namespace"]).entries
    return [budget for budget in (entry.decode() for entry in budget_entries) if _selects(budget, labels)]


def _selects(budget: Object, labels: Object) -> bool:
    """Whether a PodDisruptionBudget selects pods with these labels; an invalid selector selects none."""
    try:
        return selectors.from_label_selector((budget.get("spec") or {}).get("selector")).matches(labels)
    except SelectorError:
        return False


def _needs_no_disruption(pod: Object, budget: Object) -> bool:
    """Whether a pod that is not ready needs no allowed disruption: by policy, or because enough pods are healthy."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    if any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions):
        return False
    status = budget.get("status") or {}
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


async def _use_disruption(objects: Objects, budget_name: str, pod: Object, *, now_ns: int, is_dry_run: bool) -> None:
    """Lower disruptionsAllowed in the budget's status and add the pod to disruptedPods.

    Raises StatusError 403, 404, 429, and as every write of `objects`.
    """
    budget_kind = objects.resource(BUDGETS)

    def use_one(budget: Object) -> Object:
        status = budget.setdefault("status", {})
        _check_budget(budget)
        disrupted = status.setdefault("disruptedPods", {})
        if len(disrupted) > DISRUPTED_PODS_MAX:
            raise api_errors.forbidden(
                budget_kind, budget_name, "DisruptedPods map too big - too many evictions not confirmed"
            )
        disrupted[pod["metadata"]["name"]] = rfc3339(now_ns)
        status["disruptionsAllowed"] -= 1
        return budget

    update = UpdateOptions("status", dry_run=is_dry_run)
    await objects.update(BUDGETS, pod["metadata"]["namespace"], budget_name, use_one, options=update)


def _check_budget(budget: Object) -> None:
    """Raise StatusError 429 if the budget's status is outdated or allows no disruption."""
    name, status = budget["metadata"]["name"], budget["status"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", wait_s=_RETRY_AFTER_S)
    if status.get("disruptionsAllowed", 0) <= 0:
        desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _too_many(f"The disruption budget {name} needs {desired} healthy pods and has {current} currently")


def _too_many(reason: str, *, wait_s: int = 0) -> StatusError:
    """429 Too Many Requests; with `wait_s` it says when to try again."""
    return StatusError(
        _VIOLATION_MESSAGE,
        code=429,
        reason="TooManyRequests",
        details={"retryAfterSeconds": wait_s} if wait_s else {},
        causes=[Cause(reason="DisruptionBudget", message=reason)],
        headers={"Retry-After": str(wait_s)} if wait_s else {},
    )
