"""Finds, sets and removes conditions of a workload's status; the status computations of the controllers call it.

A condition is a dict with `type`, `status`, `reason` (may be absent), `message` and `lastTransitionTime`; a list has at
most one of a type. The functions do not change their arguments. What makes a condition a new one: `_status_and_reason`.

Source: apps/v1 DeploymentCondition and ReplicaSetCondition, and how their controllers set them.
"""

from collections.abc import Sequence

from podscaler.api.resource.resources import Object

Conditions = Sequence[Object]


def find(conditions: Conditions, type_: str) -> Object | None:
    """The condition of a type, None without one."""
    return next((condition for condition in conditions if condition["type"] == type_), None)


def without(conditions: Conditions, type_: str) -> list[Object]:
    """The conditions of all other types, in order."""
    return [condition for condition in conditions if condition["type"] != type_]


def with_condition(conditions: Conditions, new_condition: Object) -> list[Object]:
    """The conditions without the one of the type of `new_condition`, and with `new_condition` at the end.

    As upstream, with equal status and reason the old condition stays as it is, whatever its message. With equal status
    alone the new one keeps the old lastTransitionTime.
    """
    old_condition = find(conditions, new_condition["type"])
    if old_condition is not None and _status_and_reason(old_condition) == _status_and_reason(new_condition):
        return list(conditions)
    return [*without(conditions, new_condition["type"]), with_old_transition(old_condition, new_condition)]


def with_old_transition(old_condition: Object | None, new_condition: Object) -> Object:
    """`new_condition` with the lastTransitionTime of the old condition of its type (or None) if the status is equal."""
    if old_condition is None or old_condition["status"] != new_condition["status"]:
        return new_condition
    if "lastTransitionTime" not in old_condition:
        return new_condition
    return {**new_condition, "lastTransitionTime": old_condition["lastTransitionTime"]}


def _status_and_reason(condition: Object) -> tuple[str, str | None]:
    return condition["status"], condition.get("reason")
