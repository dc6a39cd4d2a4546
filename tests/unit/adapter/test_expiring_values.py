"""Values that expire: what is found, and what is dropped when."""

from podscaler.adapter.prometheus.responses import PromSample, QueryResult
from podscaler.adapter.providers import query_cache
from podscaler.adapter.providers.expiring_values import ExpiringValues
from podscaler.adapter.providers.query_cache import QueryCache
from podscaler.testing.clock import VirtualClock


def test_a_value_until_its_end() -> None:
    """It is found before the instant, and is dropped at it."""
    values: ExpiringValues[str, int] = ExpiringValues(10)
    values.put("a", 1, size=1, now_s=0.0, until_s=5.0)
    assert [values.find("a", now_s) for now_s in (0.0, 4.9, 5.0)] == [1, 1, None]
    assert len(values) == 0


def test_expired_values_are_dropped_by_others() -> None:
    """Nobody needs to ask for them again."""
    values: ExpiringValues[str, int] = ExpiringValues(10)
    values.put("a", 1, size=1, now_s=0.0, until_s=5.0)
    values.put("b", 2, size=1, now_s=5.0, until_s=10.0)
    assert len(values) == 1


def test_a_value_that_is_expired_already() -> None:
    """It is not stored, and replaces the older one."""
    values: ExpiringValues[str, int] = ExpiringValues(10)
    values.put("a", 1, size=1, now_s=0.0, until_s=5.0)
    values.put("a", 2, size=1, now_s=1.0, until_s=1.0)
    assert (values.find("a", 1.0), len(values)) == (None, 0)


def test_the_sum_of_the_sizes() -> None:
    """The oldest values are dropped first; an entry that is replaced does not count; the newest one stays."""
    values: ExpiringValues[str, int] = ExpiringValues(10)
    for key, size in (("a", 4), ("b", 4), ("b", 6)):
        values.put(key, size, size=size, now_s=0.0, until_s=5.0)
    full = [values.find(key, 0.0) for key in "ab"]
    values.put("c", 1, size=1, now_s=0.0, until_s=5.0)
    over = [values.find(key, 0.0) for key in "abc"]
    values.put("d", 11, size=11, now_s=0.0, until_s=5.0)
    assert (full, over, [values.find(key, 0.0) for key in "bcd"]) == ([4, 6], [None, 6, 1], [None, None, 11])


class _Database:
    """Returns as many samples as the expression says, and counts the queries."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def query(self, promql: str) -> QueryResult:
        """As in MetricsDatabase."""
        self.sent.append(promql)
        return QueryResult("vector", [PromSample({}, 1.0, 0.0)] * int(promql))

    async def series(self, selector: str, *, max_age_s: float) -> list[dict[str, str]]:
        """As in MetricsDatabase."""
        return []


async def test_results_of_queries_have_a_total_of_samples() -> None:
    """Over it, an older result is dropped and its query is sent again."""
    database = _Database()
    cache = QueryCache(database, VirtualClock(), tick_s=10.0)
    large = str(query_cache.SAMPLES_MAX - 100)
    for promql in (large, "10", large, "200", "10", large):
        await cache.query(promql)
    assert database.sent == [large, "10", "200", large]
