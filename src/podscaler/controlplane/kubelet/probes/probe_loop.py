"""Running one probe of a container until it is told to stop.

`container_run` starts a loop for each probe. Time is the clock's; what to do comes as a function, so that the loop can
be tested without a network. Results go to `on_result`; the verdict changes as `probe_tally` says.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome
from podscaler.controlplane.kubelet.probes.probe_tally import ProbeSpec, Tally


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One result of a probe.

    Attributes:
        verdict: what the probe says now; None before it says anything.
        changed: whether the verdict is another one than before.
        outcome: what the last check gave.
    """

    verdict: bool | None
    changed: bool
    outcome: HandlerOutcome


async def run(
    spec: ProbeSpec,
    check: Callable[[], Awaitable[HandlerOutcome]],
    on_result: Callable[[ProbeResult], None],
    clock: Clock,
    *,
    started_ns: int,
) -> None:
    """Check every period, first when the initial delay since `started_ns` is over; ends only by cancellation."""
    tally = Tally()
    due_ns = started_ns + spec.initial_delay_s * NANOSECONDS
    await clock.sleep((due_ns - clock.now_ns()) / NANOSECONDS)
    while True:
        begun_s = clock.monotonic_s()
        outcome = await check()
        counted = tally.counted(spec, ok=outcome.ok)
        on_result(ProbeResult(counted.verdict, counted.verdict != tally.verdict, outcome))
        tally = counted
        await clock.sleep(spec.period_s - (clock.monotonic_s() - begun_s))
