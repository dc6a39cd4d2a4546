"""Worked examples as tests: `examples` gives a test its titled rows, and docs/scenarios.md its table.

Each row is a title, the test's own arguments, and the expected timeline: rows of (second, replicas, reason).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import pytest

Timeline = Sequence[tuple[float, int, str]]
Test = TypeVar("Test", bound=Callable[..., None])

CPU = "cpu resource utilization (percentage of request) above target"
CONTAINER_CPU = "cpu container resource utilization (percentage of request) above target"
DOWN = "All metrics below target"
ABOVE_MAXIMUM = "Current number of replicas above Spec.MaxReplicas"
BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"


DOCUMENTATION = "Documentation"
DOCUMENTATION_V1_18 = "Documentation of v1.18"
WALKTHROUGH = "Walkthrough"
BLOG = "Practitioner's article"
DESIGN_V1 = "Design of v1.1"
DESIGN_V2 = "Proposal of v2"
KEP_853 = "KEP-853"
END_TO_END = "End-to-end tests"
RULES = "docs/spec/decision.md"


SOURCES = {
    DOCUMENTATION: "Kubernetes documentation, HorizontalPodAutoscaler (read in its Ukrainian edition)",
    DOCUMENTATION_V1_18: "the same page of v1.18 (read in its German edition)",
    WALKTHROUGH: "Kubernetes documentation, HorizontalPodAutoscaler walkthrough",
    BLOG: "Akın Özer, Advanced HPA in Kubernetes, kloia blog, 2020",
    DESIGN_V1: "design proposal of v1.1, Horizontal Pod Autoscaling",
    DESIGN_V2: "design proposal hpa-v2, Horizontal Pod Autoscaler with Arbitrary Metrics",
    KEP_853: "Kubernetes enhancement proposal 853, configurable scale velocity",
    END_TO_END: "the autoscaling suite among Kubernetes' own end-to-end tests",
    RULES: "our restatement of what kube-controller-manager v1.37.0 does",
}


class Example(NamedTuple):
    """One worked example.

    Attributes:
        title: what happens, as a phrase.
        source: the document and the passage.
        timeline: what is expected.
        differs: where the document says something else: what it says, `What holds: `, what holds.
    """

    title: str
    source: str
    timeline: Timeline
    differs: str


def examples(source: str, names: str, *rows: tuple[Any, ...], differs: str = "") -> Callable[[Test], Test]:
    """Parametrize a test by worked examples of one source.

    Args:
        source: the document and the passage.
        names: the test's arguments but for the last, `timeline`, separated by commas.
        rows: title, arguments, timeline.
        differs: see Example.
    """

    def decorated(test: Test) -> Test:
        arguments = [*filter(None, names.split(", ")), "timeline"]
        found = [Example(row[0], source, row[-1], differs) for row in rows]
        params = [pytest.param(*row[1:], id=row[0]) for row in rows]
        marked: Test = pytest.mark.parametrize(arguments, params)(test)
        marked.examples = found  # type: ignore[attr-defined] # read by scenario_table
        return marked

    return decorated
