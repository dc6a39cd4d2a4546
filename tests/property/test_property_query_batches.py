"""A batch has the values of direct queries, whatever the template, the series and the requests are."""

import asyncio
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from podscaler.adapter.naming.queries import QueryTarget, QueryTemplate
from podscaler.adapter.prometheus.responses import PrometheusError
from podscaler.adapter.providers.object_values import Batching, ObjectValues
from podscaler.adapter.providers.query_cache import QueryCache
from podscaler.api.machinery import selectors
from podscaler.testing.clock import VirtualClock
from podscaler.testing.prometheus import FakePrometheus

M, G = "<<.LabelMatchers>>", "<<.GroupBy>>"
TEMPLATES = [
    f"sum(<<.Series>>{{{M}}}) by ({G})",
    f"sum by ({G}) (irate(<<.Series>>{{{M}}}[5m]))",
    f"<<.Series>>{{{M}}}",
    f"max_over_time(<<.Series>>{{{M}}}[5m])",
    f"avg(<<.Series>>{{{M}}}) by ({G}) > 3",
    f"sum(<<.Series>>{{{M}}}) by ({G}) / count(<<.Series>>{{{M}}}) by ({G})",
    f"topk(1, <<.Series>>{{{M}}}) by ({G})",
    f"topk(1, <<.Series>>{{{M}}})",
    f"max(<<.Series>>{{{M}}}) by (pod)",
    f"min(<<.Series>>{{{M}}}) without (verb)",
    f"sum(<<.Series>>{{{M}}})",
    f"count(<<.Series>>{{{M}}})",
    f"absent(<<.Series>>{{{M}}})",
    f"sum(<<.Series>>{{{M}}}) by ({G}) or vector(7)",
    f"sum(<<.Series>>{{{M}}}) by ({G}) * scalar(max(other))",
    f"sum(<<.Series>>{{{M}}}) by ({G}) + on(pod) group_left() sum(other) by (pod)",
    f"<<.Series>>{{{M}}} - on(pod) max(<<.Series>>{{{M}}}) by (pod)",
    f"sum(<<.Series>>{{{M}}}) by (<<index .GroupBySlice 0>>)",
    f'sum(<<.Series>>{{pod=~"<<index .LabelValuesByName "pod">>"}}) by ({G})',
    f"sum(<<.Series>>{{{M}}} unless on(pod) other) by ({G})",
]
NAMES = st.sampled_from(["a", "b", "c"])
LABELS = st.fixed_dictionaries(
    {"namespace": NAMES, "pod": NAMES, "verb": NAMES, "__name__": st.sampled_from(["hits", "other"])}
)
POINTS = st.tuples(st.integers(0, 9), st.integers(0, 9))
STORES = st.lists(st.tuples(LABELS, POINTS), max_size=12, unique_by=lambda each: tuple(sorted(each[0].items())))
SELECTORS = st.sampled_from(["", "verb=a", "verb in (a,b)", "verb!=c", "!verb"])


def values(
    database: FakePrometheus, template: str, selector: str, namespace: str, names: list[str], batching: Batching
) -> Mapping[str, str] | str:
    """The text of each object's value, or the kind of the error."""
    clock = VirtualClock()
    target = QueryTarget("hits", "pod", "namespace", selectors.parse(selector))
    reader = ObjectValues(QueryCache(database, clock, tick_s=10.0), clock, batching=batching)
    try:
        found = asyncio.run(reader.samples(QueryTemplate(template), target, namespace, names))
    except PrometheusError as error:
        return error.kind
    return {name: repr(found[name][-1].value) for name in names if name in found}


@given(
    template=st.sampled_from(TEMPLATES),
    store=STORES,
    selector=SELECTORS,
    namespace=NAMES,
    names=st.lists(NAMES, min_size=1, max_size=3, unique=True),
)
def test_batched_is_direct(
    template: str, store: list[tuple[dict[str, str], tuple[int, int]]], selector: str, namespace: str, names: list[str]
) -> None:
    """Objects without a value have none in both; an error of the direct query is the error of both."""
    database = FakePrometheus()
    now_s = database.now_s
    database.stored = [(labels, [(now_s - 30, float(old)), (now_s, float(new))]) for labels, (old, new) in store]
    direct = values(database, template, selector, namespace, names, Batching.NEVER)
    assert values(database, template, selector, namespace, names, Batching.ALWAYS) == direct


def test_most_templates_are_batched() -> None:
    """The templates of documented rules need one query for all namespaces."""
    target = QueryTarget("hits", "pod", "namespace", selectors.EVERYTHING)
    batches = [QueryTemplate(template).find_batch(target, "a") for template in TEMPLATES]
    found = ["-" if batch is None else "all" if batch.namespace_label else "one" for batch in batches]
    assert " ".join(found) == "all all all all all all all - one all - - - - all - one one - -"
