"""Which samples count: the first rule that matches a pod, at its edges.

Source: docs/spec/decision.md 6.1 (Grouping pods). Seconds count from now; the CPU initialization period is 300 s, the
readiness delay 30 s.
"""

from typing import Any

import pytest

from podscaler.core.calculation import pod_groups
from podscaler.core.model.observation import Sample
from podscaler.core.model.trace import Group, PodRule, Unlisted
from podscaler.testing.decisions import NOW, SECOND, pod, situation

FRESH = Sample(100, NOW, 30 * SECOND)


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({"deleting": True, "phase": "Pending"}, PodRule.DELETING),
        ({"phase": "Failed"}, PodRule.FAILED),
        ({"phase": "Pending"}, PodRule.PENDING),
        ({"phase": "Succeeded"}, PodRule.HAS_SAMPLE),
        ({"ready": None}, PodRule.NO_READY_CONDITION),
        ({"started": None}, PodRule.NOT_STARTED),
        ({"started": -299, "ready": "False"}, PodRule.UNREADY_WHILE_STARTING),
        ({"started": -300, "ready": "False", "changed": -270}, PodRule.HAS_SAMPLE),
        ({"started": -300, "ready": "False", "changed": -271}, PodRule.NEVER_READY),
        ({"started": -3600, "ready": "False", "changed": -10}, PodRule.HAS_SAMPLE),
        ({"started": -100, "changed": -29}, PodRule.SAMPLED_BEFORE_READY),
        ({"started": -100, "changed": -30}, PodRule.HAS_SAMPLE),
        ({"started": -300, "changed": -1}, PodRule.HAS_SAMPLE),
        ({"started": -100, "ready": "Unknown", "changed": -100}, PodRule.HAS_SAMPLE),
    ],
)
def test_cpu(facts: dict[str, Any], rule: PodRule) -> None:
    """A sample of CPU counts only where the pod's start-up cannot have caused it."""
    grouped = pod_groups.grouped({"a": FRESH}, "cpu", situation([pod(**facts)]))
    assert grouped.rules == [rule]


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({"deleting": True}, PodRule.DELETING),
        ({"phase": "Failed"}, PodRule.FAILED),
        ({"phase": "Pending"}, PodRule.PENDING),
        ({"ready": None}, PodRule.HAS_SAMPLE),
        ({"started": None}, PodRule.HAS_SAMPLE),
        ({"started": -1, "ready": "False"}, PodRule.HAS_SAMPLE),
    ],
)
@pytest.mark.parametrize("resource", ["memory", "example.com/gpu", ""])
def test_other_resources(facts: dict[str, Any], rule: PodRule, resource: str) -> None:
    """Only cpu knows readiness: samples of everything else count from a pod's first second."""
    grouped = pod_groups.grouped({"a": FRESH}, resource, situation([pod(**facts)]))
    assert grouped.rules == [rule]


@pytest.mark.parametrize(
    ("facts", "rule"),
    [({}, PodRule.NO_SAMPLE), ({"ready": None}, PodRule.NO_SAMPLE), ({"phase": "Pending"}, PodRule.PENDING)],
)
def test_without_a_sample(facts: dict[str, Any], rule: PodRule) -> None:
    """A pod without a sample is missing, unless it is ignored or pending anyway."""
    assert pod_groups.grouped({}, "cpu", situation([pod(**facts)])).rules == [rule]


def test_every_rule_has_its_group() -> None:
    """Deleted and failed pods are ignored, those not ready for their sample unready, those without one missing."""
    assert {rule.value: rule.group for rule in PodRule} == {
        "Deleting": Group.IGNORED,
        "Failed": Group.IGNORED,
        "Pending": Group.UNREADY,
        "NoSample": Group.MISSING,
        "NoReadyCondition": Group.UNREADY,
        "NotStarted": Group.UNREADY,
        "UnreadyWhileStarting": Group.UNREADY,
        "SampledBeforeReady": Group.UNREADY,
        "NeverReady": Group.UNREADY,
        "HasSample": Group.COUNTED,
    }


def test_indexes_and_unlisted_samples() -> None:
    """Groups name pods by their place in the list; samples of pods that are not listed are kept apart."""
    listed = [pod("a"), pod("b", phase="Pending"), pod("c"), pod("d", deleting=True)]
    samples = {"a": Sample(1), "b": Sample(2), "d": Sample(4), "gone": Sample(5)}
    grouped = pod_groups.grouped(samples, "memory", situation(listed))
    assert (grouped.counted, grouped.unready, grouped.missing) == ([0], [1], [2])
    assert (grouped.values_milli, grouped.unlisted) == ([1, 2, None, 4], (Unlisted("gone", 5),))


def test_ready_pods_run_and_are_ready() -> None:
    """Only running pods whose Ready condition is True are ready."""
    listed = [
        pod(),
        pod(ready="False"),
        pod(ready=None),
        pod(ready="Unknown"),
        pod(phase="Pending"),
        pod(phase="Succeeded"),
        pod(deleting=True),
    ]
    assert pod_groups.count_ready(situation(listed)) == 2
