"""Whatever a ConfigMap holds: reading it never fails, and what it states can be computed at any time."""

import json
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from podscaler.api.kinds import catalog
from podscaler.api.machinery.quantity import Quantity
from podscaler.base.clock import NANOSECONDS
from podscaler.controlplane.metrics.custom import schedule
from podscaler.controlplane.metrics.custom.kinds import DescribableKinds
from podscaler.controlplane.metrics.custom.parsing import COMMON_FIELDS, SUBJECT_FIELDS, EntryContext, parse_entry
from podscaler.controlplane.metrics.custom.schedule import Ramp

KINDS = DescribableKinds(catalog.RESOURCES)
NUMBERS = ["", "5", "-1", "1e30", "1n", "5Gi", "much"]
TIMES = ["90s", "0s", "-1s", "2026-01-01T00:00:00Z", "2026-13-99T00:00:00Z"]
WORDS = st.sampled_from([*NUMBERS, *TIMES, "app=web", "=", "svc/web", "namespace", "x/y/z", "~", "yes"])
NAMES = st.sampled_from([*SUBJECT_FIELDS, *COMMON_FIELDS, "after", "at", "from", "to", "over", "other"])
VALUES = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5), max_leaves=12
)
ENTRIES = st.text(max_size=60) | VALUES.map(json.dumps)


@settings(deadline=None)
@given(text=ENTRIES, api=st.sampled_from(["custom", "external"]), now_s=st.integers(-(10**10), 10**11))
def test_no_entry_fails(text: str, api: Any, now_s: int) -> None:
    """An entry has series or faults, and every series has a value or none at every instant."""
    outcome = parse_entry("key", text, EntryContext(api, "default", 0, KINDS))
    assert all(fault.text and fault.path.startswith("data[key]") for fault in outcome.problems)
    for series in outcome.series:
        value = series.schedule.value_at(now_s * NANOSECONDS)
        assert value is None or str(value)


def exact(quantity: Quantity) -> Fraction:
    """The number that a quantity is."""
    return Fraction(quantity.unscaled) * Fraction(10) ** quantity.scale


MILLI = st.integers(-(10**15), 10**15).map(Quantity.from_milli)


@settings(deadline=None)
@given(first=MILLI, last=MILLI, span_ns=st.integers(1, 10**15), parts=st.lists(st.integers(0, 100), min_size=2))
def test_a_ramp_stays_between_its_ends(first: Quantity, last: Quantity, span_ns: int, parts: list[int]) -> None:
    """A ramp only rises or only falls, and never leaves the span between its ends."""
    ramp = Ramp(first, last, 0, span_ns)
    values = [ramp.value_at(span_ns * part // 100) for part in sorted(parts)]
    numbers = [exact(value) for value in values if value is not None]
    assert len(numbers) == len(parts)
    assert numbers == sorted(numbers, reverse=last < first)
    low, high = sorted((exact(first), exact(last)))
    assert all(low <= number <= high for number in numbers)


@settings(deadline=None)
@given(total=MILLI, among=st.integers(1, 5000))
def test_shares_make_up_the_total(total: Quantity, among: int) -> None:
    """All shares together are the total, and less than a thousandth each too much."""
    excess = exact(schedule.share(total, among)) * among - exact(total)
    assert 0 <= excess < Fraction(among, 1000)
