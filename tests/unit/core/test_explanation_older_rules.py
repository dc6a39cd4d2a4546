"""Explanations of cooldowns and of the algorithm v1.1."""

import msgspec
import pytest

from podscaler.api.machinery import instants
from podscaler.core.decision import Decision
from podscaler.core.model.history import History, Recommendation
from podscaler.core.model.settings import Settings
from podscaler.explain import explained
from podscaler.testing.decisions import NOW, SECOND, decided, observed, resource, sampled, scaler

UP_3_MIN = Settings(upscale_delay_ns=180 * SECOND)
LONG_AGO = History((Recommendation(1, NOW - 3600 * SECOND),))


def _decision(settings: Settings, seconds_ago: int, *used_milli: int) -> Decision:
    observation = observed(sampled(*used_milli), replicas=len(used_milli))
    last = instants.text(NOW - seconds_ago * SECOND)
    status = msgspec.structs.replace(observation.status, last_scale_time=last)
    spec = scaler(resource(utilization=60), most=30)
    return decided(spec, msgspec.structs.replace(observation, status=status), LONG_AGO, settings=settings)


def _lines(decision: Decision, label: str) -> list[str]:
    steps = explained.of_decision(decision).steps
    return [line.text for section in steps for line in section.lines if line.label == label]


@pytest.mark.parametrize(
    ("settings", "seconds_ago", "used_milli", "summary"),
    [
        (
            UP_3_MIN,
            60,
            (900, 600, 1200),
            "default/web stays at 3: its metrics ask for 5, but "
            "the last rescale was 1 min ago, and scaling up waits 3 min after one; "
            "earliest change in 2 min, to 5.",
        ),
        (
            Settings(algorithm="v1.1"),
            240,
            (100, 100, 100),
            "default/web stays at 3: its metrics ask for 1, but "
            "the last rescale was 4 min ago, and scaling down waits 5 min after one; "
            "earliest change in 1 min, to 1.",
        ),
        (
            Settings(algorithm="v1.1"),
            181,
            (900, 600, 1200),
            "default/web goes from 3 to 5: cpu is at 90 % of requests, target 60 %.",
        ),
        (
            UP_3_MIN,
            181,
            (6000, 6000, 6000),
            "default/web goes from 3 to 6: its metrics ask for 30, but "
            "without a behavior one sync at most doubles the count "
            "(4 are always allowed); next step in 3 min, to 12.",
        ),
    ],
    ids=["up waits", "v1.1, down waits", "v1.1, up", "the next step waits for the cooldown of this one"],
)
def test_sentences(settings: Settings, seconds_ago: int, used_milli: tuple[int, ...], summary: str) -> None:
    """What waits, for how long, and until when."""
    decision = _decision(settings, seconds_ago, *used_milli)
    assert explained.of_decision(decision).summary == summary


def test_steps() -> None:
    """The cooldown is a step, and v1.1 reckons pod by pod."""
    decision = _decision(Settings(algorithm="v1.1", upscale_delay_ns=0), 60, 900, 600, 1200)
    assert _lines(decision, "cooldown") == [
        "after a rescale scaling up waits not, scaling down 5 min; the last was 1 min ago"
    ]
    assert _lines(decision, "sum") == ["2700m used by 3 pods, 90 % of its own request by each on average"]
    assert "by the algorithm v1.1" in explained.of_decision(decision).steps[0].title
