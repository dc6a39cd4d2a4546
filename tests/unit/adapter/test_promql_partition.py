"""Which PromQL expressions one query may answer for many objects."""

import pytest

from podscaler.adapter.promql.partition import MARK_MATCHER, is_partitioned

KEYS = frozenset({"namespace", "pod"})
BY = "by (pod,namespace)"


@pytest.mark.parametrize(
    "promql",
    [
        "x{M}",
        "-x{M}",
        "rate(x{M}[5m])",
        'sum(rate(x{M,container!="POD"}[5m] offset 1h)) ' + BY,
        "sum " + BY + " (x{M}) / 2 ^ 3",
        "avg_over_time(x{M}[30m:1m] @ end())",
        "histogram_quantile(0.9, sum(rate(x_bucket{M}[5m])) by (le,pod,namespace))",
        "clamp_max(x{M}, scalar(max(limit)))",
        "topk(2, x{M}) " + BY,
        "sum(x{M}) without (container)",
        "x{M} / on(pod,namespace) group_left(owner) y{M}",
        "x{M} and ignoring(verb) y{M}",
        "sum(x{M}) " + BY + " > bool 0x10",
        "x{M} # a comment\n * 1e3",
        "(x{M})",
    ],
)
def test_partitioned(promql: str) -> None:
    """Each series of the result depends on series of its own object alone, and says which it is."""
    assert is_partitioned(promql.replace("M", MARK_MATCHER), KEYS)


@pytest.mark.parametrize(
    "promql",
    [
        "x",
        "sum(x{M})",
        "sum(x{M}) by (pod)",
        "sum(x{M}) without (namespace)",
        'count_values("pod", x{M})',
        "absent(x{M})",
        "absent_over_time(x{M}[5m])",
        "scalar(x{M})",
        "vector(1)",
        'label_replace(x{M}, "pod", "$1", "instance", "(.*)")',
        "x{M} or vector(0)",
        "x{M} or 0",
        "x{M} * on(pod) group_left() y",
        "x{M} / on(pod) y{M}",
        "x{M} / ignoring(pod) y{M}",
        "x{M} / on(pod,namespace) group_left(pod) y{M}",
        "sum(topk(1, x{M})) " + BY,
        "topk(scalar(x{M}), x{M}) " + BY,
        "unknown_function(x{M})",
        "1 + 1",
        "time()",
        "sum(x{M}) by (",
        "x{M} x{M}",
        "",
        "(" * 2000 + "x{M}" + ")" * 2000,
    ],
    ids=lambda text: text[:40],
)
def test_not_partitioned(promql: str) -> None:
    """Everything else is sent for each request; an expression that is not understood, too."""
    assert not is_partitioned(promql.replace("M", MARK_MATCHER), KEYS)


def test_le_as_a_key() -> None:
    """A quantile of a histogram drops `le`, which then cannot be a key."""
    assert not is_partitioned(f"histogram_quantile(0.9, x{{{MARK_MATCHER}}})", frozenset({"le"}))
