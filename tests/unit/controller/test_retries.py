"""When an autoscaler is synced again whose sync ended without a result."""

from podscaler.base.errors import StatusError
from podscaler.controller.reconcile.autoscaler_state import AutoscalerState

NO_RESPONSE = StatusError("connection reset", code=0)
CONFLICT = StatusError("the object has been modified", code=409, reason="Conflict")


def _delays(state: AutoscalerState, *errors: StatusError | None) -> list[float | None]:
    """The delays after syncs whose status writes end like that."""
    found = []
    for error in errors:
        state.begin_sync()
        if error is not None:
            state.note_failed_write(error)
        found.append(state.take_retry_delay_s(15.0))
    return found


def test_delays_double_up_to_a_period() -> None:
    """A server that stays away gets one request a period in the end; a sync with a result begins anew."""
    state = AutoscalerState(("shop", "web"))
    found = _delays(state, *[NO_RESPONSE] * 6, None, NO_RESPONSE)
    assert found == [1.0, 2.0, 4.0, 8.0, None, None, None, 1.0]


def test_a_conflict_counts_only_after_a_sync_without_a_response() -> None:
    """The write without a response may have happened; where another controller writes, a retry gains nothing."""
    alone = _delays(AutoscalerState(("shop", "web")), CONFLICT)
    after = _delays(AutoscalerState(("shop", "web")), NO_RESPONSE, CONFLICT)
    assert (alone, after) == ([None], [1.0, 2.0])
