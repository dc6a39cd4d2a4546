"""Restarts background tasks of `podscaler up` after an exception, with backoff.

Called by the parts of `podscaler up` that have tasks: `podscaler.cli.up.control_plane`,
`podscaler.controlplane.controller_manager` and others. An exception that ends a task is a bug or a broken
disk. It is logged with its traceback; the task starts again after FIRST_DELAY_S, which doubles with each failure up to
DELAY_MAX_S. Other tasks are not affected.
"""

import logging
from collections.abc import Awaitable, Callable

from podscaler.base.clock import Clock

log = logging.getLogger(__name__)

FIRST_DELAY_S = 1.0
DELAY_MAX_S = 30.0
HEALTHY_AFTER_S = 60.0
"""A task that ran for longer than this starts again after FIRST_DELAY_S."""


async def keep_running(
    name: str, run: Callable[[], Awaitable[None]], clock: Clock, *, on_failure: Callable[[], None] | None = None
) -> None:
    """Run a task until it returns or is cancelled; run it again after every exception.

    Args:
        name: the name of the task in the log.
        run: runs the task; called once for each attempt.
        clock: measures the delays.
        on_failure: called after each exception; None if nothing is to be called.
    """
    delay_s = FIRST_DELAY_S
    while True:
        started_s = clock.monotonic_s()
        try:
            await run()
        except Exception:
            if clock.monotonic_s() - started_s > HEALTHY_AFTER_S:
                delay_s = FIRST_DELAY_S
            log.exception("%s failed; it starts again in %g s", name, delay_s)
            if on_failure is not None:
                on_failure()
        else:
            return
        await clock.sleep(delay_s)
        delay_s = min(delay_s * 2, DELAY_MAX_S)
