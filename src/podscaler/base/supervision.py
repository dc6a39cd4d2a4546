"""Restarts background tasks of `podscaler up` after an exception, with backoff.

Called by the control plane and by the manager of its controllers. An exception that ends a task is a bug or a broken
disk. It is logged with its traceback; the task starts again after FIRST_DELAY_S, which doubles with each failure up to
MAX_DELAY_S. Other tasks are not affected.
"""

import logging
from collections.abc import Awaitable, Callable

from podscaler.base.clock import Clock

log = logging.getLogger(__name__)

FIRST_DELAY_S = 1.0
MAX_DELAY_S = 30.0
HEALTHY_AFTER_S = 60.0
"""A task that ran for longer than this starts again after FIRST_DELAY_S."""


async def keep_running(
    name: str, task: Callable[[], Awaitable[None]], clock: Clock, *, on_failure: Callable[[], None] | None = None
) -> None:
    """Run `task` until it returns or is cancelled; run it again after every exception.

    Args:
        name: the name of the task in the log.
        task: starts the task; called once for each attempt.
        clock: measures the delays.
        on_failure: called after each exception; None if nothing is to be called.
    """
    delay_s = FIRST_DELAY_S
    while True:
        started_s = clock.monotonic_s()
        try:
            await task()
        except Exception:
            if clock.monotonic_s() - started_s > HEALTHY_AFTER_S:
                delay_s = FIRST_DELAY_S
            log.exception("%s failed; it starts again in %g s", name, delay_s)
            if on_failure is not None:
                on_failure()
        else:
            return
        await clock.sleep(delay_s)
        delay_s = min(delay_s * 2, MAX_DELAY_S)
