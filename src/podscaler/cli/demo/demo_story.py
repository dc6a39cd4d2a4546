"""Describes the course of the demo as data, without side effects: views of the state, rescales, and the summary.

`podscaler.cli.demo.demo` collects views and prints lines and the summary; `podscaler.cli.demo.demo_stage` makes the
views from the API. A new fact is an attribute of DemoView that `line` prints, or an entry of `summary`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class DemoView:
    """The state at one moment, which `line` formats.

    Attributes:
        at_s: seconds since the demo began.
        load: a text such as `load 10.0/s`.
        metric: the value that the autoscaler read last, a text such as `cpu  81%`.
        is_loaded: whether there is load.
        replicas: spec.replicas of the Deployment.
        ready: the number of ready pods.
        holding: why the autoscaler does not scale, from its conditions; empty without a reason.
    """

    at_s: float
    load: str
    metric: str
    is_loaded: bool
    replicas: int
    ready: int
    holding: str = ""


@dataclass(frozen=True, slots=True)
class DemoRescale:
    """One change of the number of pods, as the autoscaler's event reports it, and the second when the demo read it."""

    at_s: float
    replicas: int
    reason: str


@dataclass(slots=True)
class Story:
    """What happened in one demo: views and rescales, each in the order of time."""

    views: list[DemoView] = field(default_factory=list)
    rescales: list[DemoRescale] = field(default_factory=list)

    @property
    def scaled_up(self) -> bool:
        """Whether a rescale made more pods."""
        return any(after > before for before, after in self._steps())

    @property
    def scaled_down(self) -> bool:
        """Whether a rescale made fewer pods."""
        return any(after < before for before, after in self._steps())

    @property
    def is_at_zero(self) -> bool:
        """Whether the last rescale left no pods."""
        return bool(self.rescales) and self.rescales[-1].replicas == 0

    @property
    def scaled_from_zero(self) -> bool:
        """Whether a rescale went from zero pods to some."""
        return any(before == 0 and after > 0 for before, after in self._steps())

    def is_over(self) -> bool:
        """Whether the load has ended, and the autoscaler scaled up and down again to the first number of replicas."""
        if not (self.scaled_up and self.scaled_down) or not self.views:
            return False
        last_view = self.views[-1]
        return (
            not last_view.is_loaded
            and last_view.replicas == self.views[0].replicas
            and last_view.ready <= last_view.replicas
        )

    def _steps(self) -> Iterator[tuple[int, int]]:
        """The replicas before and after each rescale, in the order of time."""
        replicas = self.views[0].replicas if self.views else 1
        for rescale in self.rescales:
            yield replicas, rescale.replicas
            replicas = rescale.replicas


def line(view: DemoView) -> str:
    """One view as a line of text, `  12 s   load 10.0/s   cpu  81%   pods  3  ##.` (`#`: ready, `.`: not ready)."""
    bar = "#" * view.ready + "." * max(view.replicas - view.ready, 0)
    return f"{view.at_s:4.0f} s   {view.load}   {view.metric}   pods {view.replicas:2d}  {bar}"


def rescale_line(rescale: DemoRescale) -> str:
    """One rescale as a line of text."""
    return f"{rescale.at_s:4.0f} s   => {rescale.replicas} pods: {rescale.reason}"


def summary(story: Story, facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The summary as JSON-ready data: the facts of the scenario, and the timeline of replicas."""
    return {
        "scaledUp": story.scaled_up,
        "scaledDown": story.scaled_down,
        "seconds": round(story.views[-1].at_s, 1) if story.views else 0.0,
        **facts,
        "timeline": [
            {"atSeconds": round(rescale.at_s, 1), "replicas": rescale.replicas, "reason": rescale.reason}
            for rescale in story.rescales
        ],
    }


VERDICTS_BY_DIRECTIONS = {
    (True, True): "It scaled up and down, but not all was seen.",
    (True, False): "It scaled up, but not down again.",
    (False, True): "It scaled down, but never up.",
    (False, False): "It did not scale.",
}
"""The first sentence of a demo that failed, by whether it scaled up and whether it scaled down."""


def summary_lines(facts: Mapping[str, Any], *, fact_line: str, goal: str) -> Sequence[str]:
    """The summary as lines of text.

    Args:
        facts: the result of `summary`.
        fact_line: the facts of the scenario; empty if there are none.
        goal: the first sentence of a demo that succeeded; empty if it did not.
    """
    verdict = goal or VERDICTS_BY_DIRECTIONS[facts["scaledUp"], facts["scaledDown"]]
    lines = [verdict, fact_line] if fact_line else [verdict]
    for change in facts["timeline"]:
        lines.append(f"  after {change['atSeconds']:5.1f} s   {change['replicas']:2d} pods   {change['reason']}")
    return lines
