"""What is derived from a list of pods: the same as from each pod alone, and derived once."""

from hypothesis import given
from hypothesis import strategies as st

from podscaler.api.machinery import selectors
from podscaler.core.calculation import pod_groups
from podscaler.core.model import pod_list
from podscaler.core.model.observation import Pod, PodLevelRequests, Sample
from podscaler.core.model.pod_list import PodList
from podscaler.testing.decisions import NOW, SECOND, labelled, pod, situation

PODS = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["Running", "Running", "Running", "Pending", "Failed", "Succeeded"]),
        "ready": st.sampled_from(["True", "True", "True", "False", "Unknown", None]),
        "deleting": st.sampled_from([False, False, False, True]),
        "started": st.sampled_from([-3600, -301, -300, -299, -10, None]),
        "changed": st.sampled_from([-3600, -290, -20, 0]),
    }
)
"""Arguments of `podscaler.testing.decisions.pod`."""
SAMPLES = st.one_of(st.none(), st.builds(Sample, st.integers(0, 500), st.just(NOW), st.just(30 * SECOND)))


@given(st.lists(st.tuples(PODS, SAMPLES), max_size=6), st.sampled_from(["cpu", "memory", ""]))
def test_each_pod_has_the_rule_that_it_has_beside_a_pod_that_starts(found, resource) -> None:
    """Where all pods are ready for long, rules are found together; a pod that starts ends that."""
    samples = {str(index): sample for index, (_, sample) in enumerate(found) if sample is not None}
    pods = [pod(str(index), **each) for index, (each, _) in enumerate(found)]
    together = pod_groups.grouped(samples, resource, situation(pods))
    beside = pod_groups.grouped(samples, resource, situation([*pods, pod("starting", phase="Pending")]))
    assert (together.rules, together.counted, together.missing) == (
        beside.rules[:-1],
        beside.counted,
        beside.missing,
    )


def test_a_selector_that_matches_all_pods_leaves_the_list() -> None:
    """What is derived from the list then serves the next decision, too."""
    pods = PodList([pod("a"), pod("b")])
    assert pod_list.matching(pods, selectors.parse("app=web")) is pods


def test_another_selector_is_not_taken_for_the_last_one() -> None:
    """Pods are matched again for each selector, also after one that matched all."""
    pods = PodList([pod("a"), labelled(pod("b"), {"app": "web", "tier": "db"})])
    texts = ["app=web", "tier=db", "app=web,tier=db", "app in (web,db)", "app=db", ""]
    matching = {text: pod_list.matching(pods, selectors.parse(text)).names for text in texts}
    assert matching == {
        "app=web": ["a", "b"],
        "tier=db": ["b"],
        "app=web,tier=db": ["b"],
        "app in (web,db)": ["a", "b"],
        "app=db": [],
        "": ["a", "b"],
    }


def test_nothing_matches_nothing() -> None:
    """NOTHING has no requirements, as the selector that matches everything."""
    assert pod_list.matching(PodList([pod("a")]), selectors.NOTHING) == ()


def test_requests_of_pods_that_all_state_them() -> None:
    """By resource, in list order; None where they must be looked up pod by pod."""
    level = PodLevelRequests({"cpu": 1}, {"cpu": 1})
    pods = PodList([pod("a", cpu=100, memory=5), pod("b", cpu=200)])
    with_level = PodList([Pod("c", requests_milli={"cpu": 1}, pod_level=level)])
    found = (pods.requests_milli("cpu"), pods.requests_milli("memory"), with_level.requests_milli("cpu"))
    assert found == ([100, 200], None, None)


def test_a_pod_list_is_taken_as_it_is() -> None:
    """Other sequences are copied, in order."""
    pods = PodList([pod("a")])
    assert (pod_list.of(pods) is pods, pod_list.of([pod("b"), pod("a")]).names) == (True, ["b", "a"])
