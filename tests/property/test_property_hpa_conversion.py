"""Autoscalers keep what they say on the way through older versions and back, whatever they say."""

from itertools import permutations
from typing import Any

import pytest
from hpa_objects import hpas
from hypothesis import given, settings

import sampling
from podscaler.api.kinds.autoscaling import conversion, hpa_v1
from podscaler.api.schema import canonical, decoding

PERMUTATIONS = [pytest.param(*pair) for pair in permutations(conversion.VERSIONS, 2)]
PAIRS = pytest.mark.parametrize(("one", "other"), sampling.one_in(4, PERMUTATIONS))
V2 = "autoscaling/v2"


@given(hpas())
def test_v2_survives_v1(hpa: dict[str, Any]) -> None:
    """A v2 object whose cpu utilization stands last comes back from v1 as it was."""
    returned = hpa_v1.to_v2(hpa_v1.from_v2(hpa))
    assert canonical.canonical(returned, "autoscaling/v2.HorizontalPodAutoscaler") == hpa


@given(hpas())
def test_v1_is_stable(hpa: dict[str, Any]) -> None:
    """What v1 shows is the same after it was written back."""
    shown = hpa_v1.from_v2(hpa)
    assert hpa_v1.from_v2(hpa_v1.to_v2(shown)) == shown


@PAIRS
@settings(max_examples=40, deadline=None)
@given(given_hpa=hpas())
def test_every_pair_of_versions_round_trips(one: str, other: str, given_hpa: dict[str, Any]) -> None:
    """What no loss is reported for comes back from any version to any other as it was."""
    first = conversion.convert(given_hpa, one)
    second = conversion.convert(first.obj, other)
    returned = conversion.convert(second.obj, one)
    if not second.losses:
        assert returned.obj == first.obj


@pytest.mark.parametrize("version", sampling.one_in(2, conversion.VERSIONS))
@settings(max_examples=40, deadline=None)
@given(given_hpa=hpas())
def test_v2_comes_back_unless_a_loss_says_otherwise(version: str, given_hpa: dict[str, Any]) -> None:
    """A conversion without losses says everything that v2 said."""
    converted = conversion.convert(given_hpa, version)
    returned = canonical.canonical(conversion.convert(converted.obj, V2).obj, f"{V2}.HorizontalPodAutoscaler")
    assert (returned == given_hpa) == (not converted.losses)


@pytest.mark.parametrize("version", sampling.one_in(2, conversion.VERSIONS))
@settings(max_examples=20, deadline=None)
@given(given_hpa=hpas())
def test_what_is_written_can_be_read(version: str, given_hpa: dict[str, Any]) -> None:
    """Every version has only fields that its schema knows, in the form in which a decoder leaves them."""
    converted = conversion.convert(given_hpa, version)
    assert decoding.decode_value(converted.obj, conversion.VERSIONS[version].message).problems == ()
