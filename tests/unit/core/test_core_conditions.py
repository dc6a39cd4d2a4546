"""Conditions: matched by type, never reordered, transition times only when the status changes.

Source: docs/spec/decision.md 11.3 (Conditions).
"""

from podscaler.api.typed.autoscaling import Condition
from podscaler.core.model.conditions import Conditions

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
ABLE = Condition("AbleToScale", "True", OLD, "Old", "old", 7)
LIMITED = Condition("ScalingLimited", "False", OLD, "Old", "old")


def test_new_ones_are_appended() -> None:
    """A condition that was not there starts now, at the end."""
    conditions = Conditions([ABLE], NEW)
    conditions.set("ScalingActive", "True", "R", "m")
    assert conditions.as_tuple() == (ABLE, Condition("ScalingActive", "True", NEW, "R", "m"))


def test_the_transition_time_follows_the_status() -> None:
    """Reason and message are always overwritten, the transition time with the status only; the rest is kept."""
    conditions = Conditions([ABLE, LIMITED], NEW)
    conditions.set("AbleToScale", "True", "R", "m")
    conditions.set("ScalingLimited", "True", "R", "m")
    assert conditions.as_tuple() == (
        Condition("AbleToScale", "True", OLD, "R", "m", 7),
        Condition("ScalingLimited", "True", NEW, "R", "m"),
    )


def test_removal_keeps_the_order() -> None:
    """Removing a condition, there or not, leaves the others as they are."""
    conditions = Conditions([ABLE, LIMITED], NEW)
    conditions.remove("AbleToScale")
    conditions.remove("ScaledToZero")
    assert conditions.as_tuple() == (LIMITED,)
