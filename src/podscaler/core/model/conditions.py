"""Builds the new `status.conditions` of an autoscaler during one sync: set by type, never reordered.

Example: setting AbleToScale from True to False changes its lastTransitionTime; setting it to True again with another
reason does not. Called by `podscaler.core.decide` and `podscaler.core.settle`.

Source: docs/spec/decision.md 11.3 (Conditions).
"""

from collections.abc import Sequence

from podscaler.api.typed.autoscaling import Condition

ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"
SCALED_TO_ZERO = "ScaledToZero"


class Conditions:
    """The conditions of one autoscaler, with the changes that the stages of the sync have made so far.

    Args:
        conditions: the conditions in the status before the sync.
        transition_time: the transition time of changes, RFC 3339.
    """

    def __init__(self, conditions: Sequence[Condition], transition_time: str) -> None:
        self._before = conditions
        self._conditions = list(conditions)
        self._transition_time = transition_time

    def set(self, condition_type: str, status: str, reason: str, message: str) -> None:
        """Overwrite the condition of that type, or append it; the transition time changes only when the status does."""
        for index, condition in enumerate(self._conditions):
            if condition.type == condition_type:
                transition = condition.last_transition_time if condition.status == status else self._transition_time
                self._conditions[index] = Condition(
                    condition_type, status, transition, reason, message, condition.observed_generation
                )
                return
        self._conditions.append(Condition(condition_type, status, self._transition_time, reason, message))

    def restore(self, condition_type: str) -> None:
        """Reset a condition that the status had before this sync."""
        for old_condition in self._before:
            if old_condition.type == condition_type:
                self._conditions = [
                    old_condition if condition.type == condition_type else condition for condition in self._conditions
                ]

    def remove(self, condition_type: str) -> None:
        """Drop the condition of that type, if there is one."""
        self._conditions = [condition for condition in self._conditions if condition.type != condition_type]

    def as_tuple(self) -> tuple[Condition, ...]:
        """All conditions, in the order of the status."""
        return tuple(self._conditions)
