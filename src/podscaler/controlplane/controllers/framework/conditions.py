"""Finds, sets and removes conditions of a workload's status; the status computations of the controllers call it.

A condition is a dict with `type`, `status`, `reason` and `message`; a list has at most one of a type. The functions do
not change their arguments.

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
    """The conditions with `new_condition` at the end in place of the one of its type.

    With equal status and reason the old condition stays as it is, whatever its message. With equal status alone the new
    one keeps the old lastTransitionTime.
    """
    old_condition = find(conditions, new_condition["type"])
    if old_condition is not None and old_condition["status"] == new_condition["status"]:
        if old_condition.get("reason") == new_condition.get("reason"):
            return list(conditions)
        if "lastTransitionTime" in old_condition:
            new_condition = {**new_condition, "lastTransitionTime": old_condition["lastTransitionTime"]}
    return [*without(conditions, new_condition["type"]), new_condition]
