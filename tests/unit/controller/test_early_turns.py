"""When an autoscaler whose turn came to nothing has another one."""

from podscaler.controller.reconcile.retries import EarlyTurns

WEB = ("shop", "web")


def _delays(early: EarlyTurns, *misses: bool) -> list[float | None]:
    found = []
    for misses_it in misses:
        early.begin(WEB)
        if misses_it:
            early.miss(WEB)
        found.append(early.delay_s(WEB, 15.0))
    return found


def test_waits_double_up_to_a_period() -> None:
    """A server that stays away is asked once a period in the end, and a good turn begins anew."""
    found = _delays(EarlyTurns(), True, True, True, True, True, True, False, True)
    assert found == [1.0, 2.0, 4.0, 8.0, None, None, None, 1.0]


def test_a_conflict_counts_only_after_a_turn_without_an_answer() -> None:
    """What got no answer may have happened; where another controller writes, nothing is gained by hurrying."""
    early = EarlyTurns()
    early.begin(WEB)
    early.miss_again(WEB)
    alone = early.delay_s(WEB, 15.0)
    _delays(early, True)
    early.begin(WEB)
    early.miss_again(WEB)
    assert (alone, early.delay_s(WEB, 15.0)) == (None, 2.0)


def test_nothing_is_remembered_of_the_gone() -> None:
    """An autoscaler that comes back begins anew."""
    early = EarlyTurns()
    _delays(early, True, True)
    early.forget(WEB)
    assert (early.delay_s(WEB, 15.0), _delays(early, True)) == (None, [1.0])
