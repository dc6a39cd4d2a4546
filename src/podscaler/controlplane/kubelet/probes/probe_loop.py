"""Runs one probe of a container every period until it is cancelled, as the prober worker of kubelet does.

`kubelet.containers.container_run` starts `run` as a task for each probe, and acts on the results. The check is a
function argument, so that tests need no network. `probe_tally` counts the results. Another event of a check:
`ProbeResult.event`.

Source: pkg/kubelet/prober/worker.go (kubelet).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.controlplane.kubelet.probes.handlers import HandlerOutcome
from podscaler.controlplane.kubelet.probes.probe_tally import ProbeSpec, Tally

ContainerEvent = tuple[Literal["Normal", "Warning"], str, str]
"""Type, reason and message of an event of a container."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one check.

    Attributes:
        verdict: True passed, False failed, None while neither threshold has been reached yet.
        changed: whether the verdict differs from that after the check before.
        outcome: that of this check, which the verdict may not follow yet.
    """

    spec: ProbeSpec
    verdict: bool | None
    changed: bool
    outcome: HandlerOutcome

    @property
    def event(self) -> ContainerEvent | None:
        """The event that kubelet records for this check; None for no event."""
        kind = self.spec.kind.capitalize()
        if not self.outcome.ok:
            return "Warning", "Unhealthy", f"{kind} probe failed: {self.outcome.text}"
        if self.outcome.warning:
            return "Warning", "ProbeWarning", f"{kind} probe warning: {self.outcome.warning}"
        return None


async def run(
    spec: ProbeSpec,
    check: Callable[[], Awaitable[HandlerOutcome]],
    on_result: Callable[[ProbeResult], None],
    clock: Clock,
    *,
    started_ns: int,
) -> None:
    """Check every period until cancelled. Raises what `check` raises.

    Args:
        spec: the probe, with its delays and thresholds.
        check: carries out the probe's handler; it applies the timeout itself.
        on_result: called after each check.
        started_ns: when the container started; the first check is `initial_delay_s` later, or at once if that is past.
    """
    tally = Tally()
    due_ns = started_ns + spec.initial_delay_s * NANOSECONDS
    await clock.sleep((due_ns - clock.now_ns()) / NANOSECONDS)
    while True:
        check_started_s = clock.monotonic_s()
        outcome = await check()
        new_tally = tally.with_result(spec, ok=outcome.ok)
        on_result(ProbeResult(spec, new_tally.verdict, new_tally.verdict != tally.verdict, outcome))
        tally = new_tally
        await clock.sleep(spec.period_s - (clock.monotonic_s() - check_started_s))
