"""Computes cooldowns: the delays after a rescale, before the next one in each direction.

Called by `podscaler.core.decide` after all limits, with the delays of the algorithm or of the flags. Other delays are
the field `delays` of an Algorithm. Rules:

1. A delay begins at `status.lastScaleTime`, in whole seconds, which outlives the controller and which scaling by hand
   does not change.
2. A direction may scale again after the last instant of its delay, not at it.
3. A target outside minimum and maximum is scaled to them at once, and a target without replicas is not delayed.

Source: the design document of Kubernetes v1.1; the flags and conditions of kube-controller-manager 1.6 to 1.11.
"""

from podscaler.api.machinery import instants
from podscaler.core.model.observation import Fact
from podscaler.core.model.trace import Cooldown

MESSAGES = {
    "BackoffBoth": "the time since the previous scale is still within both the downscale and upscale forbidden windows",
    "BackoffDownscale": "the time since the previous scale is still within the downscale forbidden window",
    "BackoffUpscale": "the time since the previous scale is still within the upscale forbidden window",
}
"""Reasons of AbleToScale (False), and their messages in those releases."""


class Delays(Fact, frozen=True, gc=False):
    """The delays of scaling up and of scaling down after a rescale, in ns; 0 if that direction is not delayed."""

    up_ns: int = 0
    down_ns: int = 0


NO_DELAYS = Delays()


def of(delays: Delays, last_scale_time: str | None, now_ns: int) -> Cooldown | None:
    """The cooldown, of which the caller sets `held`; None if there are no delays. Raises ValueError for a bad time."""
    if delays == NO_DELAYS:
        return None
    if not last_scale_time:
        return Cooldown(delays.up_ns, delays.down_ns)
    scaled_at = instants.parse(last_scale_time)
    up_until, down_until = (_delay_end(scaled_at, delay_ns, now_ns) for delay_ns in (delays.up_ns, delays.down_ns))
    return Cooldown(delays.up_ns, delays.down_ns, scaled_at, up_until, down_until)


def _delay_end(scaled_at: int, delay_ns: int, now_ns: int) -> int | None:
    """The last instant of a delay; None if there is no delay, or it is over."""
    ends_at = scaled_at + delay_ns
    return ends_at if delay_ns and now_ns <= ends_at else None


def reason(cooldown: Cooldown) -> str:
    """The reason of AbleToScale while the cooldown runs, one of MESSAGES."""
    if cooldown.up_until is None:
        return "BackoffDownscale"
    return "BackoffUpscale" if cooldown.down_until is None else "BackoffBoth"


def holds(cooldown: Cooldown, desired: int, current: int) -> bool:
    """Whether the change from `current` to `desired` has to wait."""
    until = cooldown.up_until if desired > current else cooldown.down_until
    return current not in (desired, 0) and until is not None
