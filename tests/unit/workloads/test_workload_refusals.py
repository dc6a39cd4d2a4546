"""What refused writes mean to controllers."""

import pytest

from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.framework import write_errors

GONE = StatusError("not found", code=404, reason="NotFound")
CHANGED = StatusError("changed", code=409, reason="Conflict")
TAKEN = StatusError("taken", code=409, reason="AlreadyExists")


async def _refused(error: StatusError) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "or_replaced", "is_ignored"),
    [
        pytest.param(GONE, False, True, id="gone"),
        pytest.param(GONE, True, True, id="gone, others too"),
        pytest.param(CHANGED, True, True, id="another one of the name"),
        pytest.param(CHANGED, False, False, id="another one, which counts"),
        pytest.param(TAKEN, True, False, id="anything else"),
    ],
)
async def test_writes_to_what_may_be_gone(error: StatusError, or_replaced: bool, is_ignored: bool) -> None:
    """That an object is gone is no failure, nor, if told so, that another one has its name."""
    if is_ignored:
        assert await write_errors.ignoring_gone(_refused(error), or_replaced=or_replaced) is False
        return
    with pytest.raises(StatusError) as caught:
        await write_errors.ignoring_gone(_refused(error), or_replaced=or_replaced)
    assert caught.value is error
