"""The search for a better spec: goals, the specs that it may try, and what it recommends."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.kinds.autoscaling import hpa_validation
from podscaler.api.typed import autoscaling
from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerSpec
from podscaler.base.errors import UsageError
from podscaler.explain import what_if_fields
from podscaler.simulation.search import goals, recommendation, search, space
from podscaler.simulation.search.folds import FoldedScores
from podscaler.simulation.search.scores import Scores
from podscaler.simulation.search.search import SearchBudget
from podscaler.simulation.search.space import ReplicaBounds, SearchSpace


def metric(utilization: int) -> autoscaling.MetricSpec:
    """CPU utilization."""
    target = autoscaling.MetricTarget(type="Utilization", average_utilization=utilization)
    return autoscaling.MetricSpec(type="Resource", resource=autoscaling.ResourceMetricSource(name="cpu", target=target))


def queue(average: str) -> autoscaling.MetricSpec:
    """The length of a queue for each pod."""
    identifier = autoscaling.MetricIdentifier(name="jobs")
    target = autoscaling.MetricTarget(type="AverageValue", average_value=average)
    return autoscaling.MetricSpec(
        type="External", external=autoscaling.ExternalMetricSource(metric=identifier, target=target)
    )


REFERENCE = autoscaling.CrossVersionObjectReference(kind="Deployment", name="web", api_version="apps/v1")
PRESENT = HorizontalPodAutoscalerSpec(
    scale_target_ref=REFERENCE, min_replicas=2, max_replicas=20, metrics=(metric(50), queue("30"))
)


def scores(**values: float) -> Scores:
    """Scores that are 0 unless stated otherwise."""
    return Scores(**{field: values.get(field, 0.0) for field in Scores.__struct_fields__})


def by_target(spec: HorizontalPodAutoscalerSpec, *, too_few_from: int = 75) -> Scores:
    """A higher target needs fewer pods; from `too_few_from` % on there are too few."""
    target = spec.metrics[0].resource.target.average_utilization
    return scores(pod_hours=10_000 / target, under_provisioned_pct=max(target - too_few_from, 0))


def result(later_too_few_from: int = 75, limit: str = "under-provisioned<1%"):
    """A search over the target alone."""
    return search.search(
        SearchSpace(PRESENT, ["target"], ReplicaBounds(1, 20)),
        goals.parse([limit], ["pod-hours"]),
        lambda specs: [FoldedScores(by_target(spec)) for spec in specs],
        lambda specs: [by_target(spec, too_few_from=later_too_few_from) for spec in specs],
        SearchBudget(trials=150, seed=1),
        lambda done: None,
    )


def test_the_best_target_is_found():
    """75 % is the highest target without too few pods; the limit with its margin allows 75.8."""
    found = result()
    assert found.chosen.spec.metrics[0].resource.target.average_utilization == 75
    assert (found.refusal, found.trials) == ("", 150)


def test_changes_that_do_not_help_are_left_out():
    """The windows do nothing in this evaluation, so they stay unset."""
    found = search.search(
        SearchSpace(PRESENT, ["target", "down-window", "up-policies"], ReplicaBounds(1, 20)),
        goals.parse(["under-provisioned<1%"], ["pod-hours"]),
        lambda specs: [FoldedScores(by_target(spec)) for spec in specs],
        lambda specs: [by_target(spec) for spec in specs],
        SearchBudget(trials=50, seed=1),
        lambda done: None,
    )
    assert found.chosen.spec.behavior is None


def test_a_choice_that_does_not_hold_later_is_not_recommended():
    """On the later part 70 % is too much already."""
    assert result(70).refusal == "on the later part it does not keep under-provisioned<1%: 5.00"


def test_a_goal_that_nothing_reaches():
    """Then there is no recommendation, and the present spec's scores are told."""
    found = result(limit="pod-hours<50h")
    assert found.chosen is None
    assert found.refusal == "no candidate keeps pod-hours<50h on the first part with a margin of a fifth"


def balanced(*, later_under: float = 0.0, first_pod_hours: float = 0.9, stop_after: int = 1000):
    """A search in which another target than 50 % has fewer pods, on the later part with missing pods."""

    def first(specs):
        if len(specs) > 1 and (calls := counted.append(1) or len(counted)) > stop_after:
            raise KeyboardInterrupt(calls)
        return [
            FoldedScores(scores(pod_hours=10 * (1 if utilization(each) == 50 else first_pod_hours))) for each in specs
        ]

    def later(specs):
        return [scores(pod_hours=9, under_amount_pct=later_under * (utilization(each) != 50)) for each in specs]

    counted = []
    goal, budget = goals.parse([], []), SearchBudget(trials=50, seed=1)
    return search.search(SearchSpace(PRESENT, ["target"], ReplicaBounds(1, 20)), goal, first, later, budget, print)


def utilization(spec: HorizontalPodAutoscalerSpec) -> int:
    """The target of the CPU."""
    return spec.metrics[0].resource.target.average_utilization


def test_without_limits_nothing_may_become_worse():
    """Fewer pods on the first part, and missing pods on the later one: that is no improvement."""
    sentence = "on the later part it is worse than the present spec in under-amount: 5.00 % instead of 0.00 %"
    assert balanced(later_under=5).refusal == sentence


def test_a_gain_that_is_only_on_the_first_part():
    """Equal on the later part."""
    sentence = "on the later part it is not better than the present spec in pod-hours or under-amount"
    assert balanced().refusal == sentence


def test_a_gain_within_the_noise():
    """Half a percent is no gain."""
    found = balanced(first_pod_hours=0.995)
    assert found.chosen is None
    assert found.refusal == "no candidate is better than the present spec on the first part by more than its noise"


@pytest.mark.parametrize(
    ("batches", "trials"), [pytest.param(1, 25, id="after a batch"), pytest.param(0, 0, id="at once")]
)
def test_an_interrupted_search_has_what_it_found(batches, trials):
    """Ctrl-C after a batch, or before the first one."""
    found = balanced(stop_after=batches)
    assert (found.is_interrupted, found.trials, found.chosen is None) == (True, trials, trials == 0)
    assert trials or found.refusal == "the search was interrupted before a candidate was evaluated"


def test_a_spec_without_metrics_has_the_default_one():
    """The API's default, CPU at 80 %, is what targets start from."""
    bare = msgspec.structs.replace(PRESENT, metrics=None)
    assert SearchSpace(bare, ["target"], ReplicaBounds(1, 20)).present_values()["target0"] == 80


def test_equal_seeds_find_the_same():
    """Suggestions are drawn from the seed."""
    assert result() == result()


def test_the_front_has_no_candidate_that_another_one_beats():
    """Two objectives that contradict each other."""
    found = search.search(
        SearchSpace(PRESENT, ["target"], ReplicaBounds(1, 20)),
        goals.parse([], ["pod-hours", "under-provisioned"]),
        lambda specs: [FoldedScores(by_target(spec, too_few_from=50)) for spec in specs],
        lambda specs: [by_target(spec) for spec in specs],
        SearchBudget(trials=60, seed=1),
        lambda done: None,
    )
    objectives = [(each.scores.pod_hours, each.scores.under_provisioned_pct) for each in found.front]
    assert len(objectives) > 5
    assert sorted(objectives, key=lambda pair: (pair[0], -pair[1])) == objectives
    assert [under for _, under in objectives] == sorted((under for _, under in objectives), reverse=True)


@pytest.mark.parametrize(
    ("limits", "minimize", "message"),
    [
        pytest.param(["foo<1%"], [], '"foo<1%": there is no measure foo', id="no measure"),
        pytest.param(["under-provisoned<1%"], [], "did you mean under-provisioned?", id="misspelt"),
        pytest.param(["under-provisioned"], [], "is not a limit such as", id="no limit"),
        pytest.param(["pod-hours<1%"], [], '"pod-hours<1%": pod-hours is in h, not in %', id="another unit"),
        pytest.param([], ["cost"], '"cost": there is no measure cost', id="no objective"),
    ],
)
def test_goals_that_cannot_be(limits, minimize, message):
    """The sentence names the text and what is possible."""
    with pytest.raises(UsageError) as raised:
        goals.parse(limits, minimize)
    assert message in str(raised.value)


class Drawn:
    """A suggester whose values hypothesis draws."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """Any allowed number."""
        assert low <= high, name
        return self._data.draw(st.sampled_from(range(low, high + 1, step)), label=name)

    def suggest_categorical(self, name: str, choices: list[str]) -> str:
        """Any choice."""
        return self._data.draw(st.sampled_from(choices), label=name)


@given(st.data(), st.sets(st.sampled_from(list(space.DIMENSIONS))))
def test_the_api_accepts_every_suggestion(data, dimensions):
    """Whatever is suggested passes the API's validation."""
    suggested = SearchSpace(PRESENT, sorted(dimensions), ReplicaBounds(1, 30)).suggest(Drawn(data))
    manifest = recommendation.manifest("default", "web", suggested)
    complete = manifest | {"spec": what_if_fields.set_defaults(manifest["spec"])}
    assert hpa_validation.validate(complete, None) == []


@pytest.mark.parametrize(
    ("dimensions", "message"),
    [
        pytest.param(["windw"], "windw cannot be tuned", id="no dimension"),
        pytest.param(["metric"], "the dimension metric needs an autoscaler with two metrics or more", id="one metric"),
    ],
)
def test_dimensions_that_cannot_be(dimensions, message):
    """The sentence says what can be tuned."""
    single = msgspec.structs.replace(PRESENT, metrics=(metric(50),))
    with pytest.raises(UsageError, match=message):
        SearchSpace(single, dimensions, ReplicaBounds(1, 20))


def test_changes_are_named_by_their_paths():
    """Policies of a direction are one field."""
    policies = (autoscaling.HPAScalingPolicy("Pods", 2, 60),)
    down = autoscaling.HPAScalingRules(stabilization_window_seconds=60, policies=policies)
    after = msgspec.structs.replace(
        PRESENT,
        min_replicas=3,
        metrics=(metric(70), queue("30")),
        behavior=autoscaling.HorizontalPodAutoscalerBehavior(scale_down=down),
    )
    assert [str(change) for change in recommendation.changes(PRESENT, after)] == [
        "minReplicas: 2 -> 3",
        "metrics[0].resource.target.averageUtilization: 50 -> 70",
        "behavior.scaleDown.stabilizationWindowSeconds: unset -> 60",
        'behavior.scaleDown.policies: unset -> [{"type":"Pods","value":2,"periodSeconds":60}]',
    ]
    assert [group for group in recommendation.GROUPS if recommendation.undo_group(group, PRESENT, after)] == [
        "minReplicas",
        "metrics",
        "behavior.scaleDown.stabilizationWindowSeconds",
        "behavior.scaleDown.policies",
    ]


def test_an_effect_is_told_in_measures():
    """Only what differs is named."""
    with_change, without = scores(pod_hours=100, lost_pct=1), scores(pod_hours=120, lost_pct=1)
    told = recommendation.effect("metrics", with_change, without, ["pod-hours", "lost"])
    assert told == "metrics: pod-hours 100.00 h instead of 120.00 h"
    same = recommendation.effect("metrics", without, without, ["pod-hours"])
    assert same == "metrics: makes no difference on this load"


def test_the_manifest_is_for_kubectl():
    """autoscaling/v2 with metadata and spec."""
    manifest = recommendation.manifest("shop", "web", PRESENT)
    assert (manifest["apiVersion"], manifest["metadata"]) == (
        "autoscaling/v2",
        {"name": "web", "namespace": "shop"},
    )
    assert manifest["spec"]["scaleTargetRef"] == {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
