"""Policies: what they allow, given what was changed within their periods.

Source: docs/spec/decision.md 9.3 (Rates and bounds), 10 (Scale-event history), 14 (Test vectors); KEP-853. Events are
written as (change, seconds ago).
"""

import pytest

from podscaler.core.limits import policies
from podscaler.core.limits.policies import PolicyFacts, PolicyLimit
from podscaler.core.model.emulation import V1_37, V1_38, Emulation
from podscaler.core.model.history import History, ScaleEvent
from podscaler.core.model.trace import PolicyBudget
from podscaler.testing.decisions import NOW, SECOND, Json, rules, scaler

I32_MAX = 2**31 - 1
Ago = list[tuple[int, int]]


def events(ago: Ago) -> tuple[ScaleEvent, ...]:
    """Events from (change, seconds ago)."""
    return tuple(ScaleEvent(change, NOW - seconds * SECOND) for change, seconds in ago)


def rates(
    up: Json | None = None,
    down: Json | None = None,
    *,
    ups: Ago | None = None,
    downs: Ago | None = None,
    emulation: Emulation = V1_37,
) -> PolicyFacts:
    """The policies and the past that they look at."""
    behavior = scaler(behavior={"scaleUp": up, "scaleDown": down}).behavior
    assert behavior is not None
    return PolicyFacts(behavior, History((), events(ups or []), events(downs or [])), NOW, emulation)


@pytest.mark.parametrize(
    ("policy", "current", "limit"),
    [
        (("Pods", 4, 60), 3, 7),
        (("Percent", 100, 60), 3, 6),
        (("Percent", 10, 60), 100, 111),
        (("Percent", 10, 60), 50, 56),
        (("Percent", 100, 60), 0, 0),
        (("Pods", 1, 60), 0, 1),
        (("Pods", I32_MAX, 60), 1, 1),
        (("Percent", I32_MAX, 60), 200, 200),
        (("Percent", 900, 60), 1, 10),
    ],
)
def test_up(policy: tuple[str, int, int], current: int, limit: int) -> None:
    """How far up one policy allows to go; what wraps or does not fit allows no change."""
    assert policies.scale_up_limit(rates(up=rules(policy)), current).limit == limit


@pytest.mark.parametrize(
    ("policy", "current", "limit"),
    [
        (("Pods", 4, 60), 10, 6),
        (("Pods", 4, 60), 2, -2),
        (("Percent", 90, 60), 10, 0),
        (("Percent", 90, 60), 20, 1),
        (("Percent", 90, 60), 50, 4),
        (("Percent", 90, 60), 100, 9),
        (("Percent", 80, 60), 5, 0),
        (("Percent", 100, 60), 7, 0),
        (("Percent", 10, 60), 72, 64),
    ],
)
def test_down(policy: tuple[str, int, int], current: int, limit: int) -> None:
    """How far down one policy allows to go; percentages are cut toward zero, with the float traps of upstream."""
    assert policies.scale_down_limit(rates(down=rules(policy)), current).limit == limit


@pytest.mark.parametrize(
    ("select", "up", "down"),
    [("Max", 20, 5), ("Min", 14, 8), ("Disabled", 10, 10), (None, 20, 5)],
)
def test_selection(select: str | None, up: int, down: int) -> None:
    """Max takes the policy that changes most, Min the one that changes least, Disabled none."""
    both = rates(
        up=rules(("Pods", 4, 60), ("Percent", 100, 60), select=select),
        down=rules(("Pods", 2, 60), ("Percent", 50, 60), select=select),
    )
    found = (policies.scale_up_limit(both, 10).limit, policies.scale_down_limit(both, 10).limit)
    assert found == (up, down)


@pytest.mark.parametrize(
    ("current", "ups", "downs", "limit"),
    [
        (7, [(3, 59)], [], 8),
        (7, [(3, 60)], [], 11),
        (10, [(3, 10), (1, 20)], [], 10),
        (7, [], [(5, 59)], 16),
        (7, [(4, 10)], [(4, 10)], 11),
        (10, [(9, 10)], [], 10),
    ],
    ids=["just inside", "at the cutoff", "nothing left", "removed counts too", "both cancel", "overdrawn"],
)
def test_budget_of_a_period(current: int, ups: Ago, downs: Ago, limit: int) -> None:
    """Of 4 pods a minute, what was added within it (the cutoff excluded) is gone; what was removed comes on top."""
    found = policies.scale_up_limit(rates(up=rules(("Pods", 4, 60)), ups=ups, downs=downs), current)
    assert found.limit == limit


def test_budget_is_traced() -> None:
    """The trace shows where the period started, what the policy allows and what is left of it."""
    allowance = policies.scale_up_limit(
        rates(up=rules(("Pods", 4, 60), ("Percent", 10, 15)), ups=[(3, 30)], downs=[(1, 5)]), 10
    )
    assert allowance == PolicyLimit(
        "Max",
        13,
        (
            PolicyBudget("Pods", 4, 60 * SECOND, 3, 1, 8, 12, 2),
            PolicyBudget("Percent", 10, 15 * SECOND, 0, 1, 11, 13, 3),
        ),
    )


def test_outdated_events_still_count() -> None:
    """An event that was marked outdated counts again where a policy is lengthened later."""
    behavior = scaler(behavior={"scaleUp": rules(("Pods", 4, 600))}).behavior
    assert behavior is not None
    past = History((), (ScaleEvent(3, NOW - 300 * SECOND, is_outdated=True),), ())
    assert policies.scale_up_limit(PolicyFacts(behavior, past, NOW, V1_37), 10).limit == 11


def test_version_1_38_saturates() -> None:
    """A percentage that does not fit an int32 allows everything from v1.38 on, nothing before."""
    huge = rules(("Percent", I32_MAX, 60))
    limits = [policies.scale_up_limit(rates(up=huge, emulation=version), 200).limit for version in (V1_37, V1_38)]
    assert limits == [200, I32_MAX]


def test_kep_853_rapid_growth() -> None:
    """KEP-853: 900 % a minute goes 1, 10, 100, 1000."""
    counts = [1]
    for _ in range(3):
        counts.append(policies.scale_up_limit(rates(up=rules(("Percent", 900, 60))), counts[-1]).limit)
    assert counts == [1, 10, 100, 1000]


def test_documented_down_example() -> None:
    """4 pods or 10 % a minute: 80 goes to 72, 72 to 64 (7.2 rounded up), and below 40 the 4 pods are more."""
    down = rules(("Pods", 4, 60), ("Percent", 10, 60))
    limits = [policies.scale_down_limit(rates(down=down), current).limit for current in (80, 72, 39, 20)]
    assert limits == [72, 64, 35, 16]
