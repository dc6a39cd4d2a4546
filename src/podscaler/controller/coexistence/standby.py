"""Whether the controller writes, or stands by: decides and remembers, and leaves the cluster as it is.

The reconciler asks `block_reason` when it has decided, and again after a rescale was stored, right before it writes the
scale. Rules:

1. A dry run never writes.
2. While another controller is at work on a HorizontalPodAutoscaler
   (`podscaler.controller.informers.other_controllers`), `--other-controller` says what to do about that one: `refuse`
   stands by until the other has been silent, `warn` says so once and writes, `ignore` does not look. Nobody else looks
   after PodAutoscalers.
3. A PodAutoscaler that is gone, or handed over to another, is not carried out any more, even if its sync began before.
"""

import logging
from collections.abc import Callable

from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.informers.other_controllers import PERIODS, SILENCE_S, OtherControllers
from podscaler.controller.options.autoscaler_kinds import HPA
from podscaler.core.decision import Decision
from podscaler.explain import explained
from podscaler.explain.source import TraceSource
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

REFUSE = "refuse"
WARN = "warn"
IGNORE = "ignore"
POLICIES = (REFUSE, WARN, IGNORE)
DRY_RUN = "this is a dry run"
GONE = "the autoscaler is gone or handed over"


class WriteGate:
    """See the module's rules.

    Args:
        is_dry_run: rule 1.
        others: rule 2; None: nobody looks.
        policy: one of POLICIES.
        is_current: rule 3.
    """

    def __init__(
        self,
        *,
        is_dry_run: bool = False,
        others: OtherControllers | None = None,
        policy: str = IGNORE,
        is_current: Callable[[Autoscaler], bool] | None = None,
    ) -> None:
        self.is_dry_run = is_dry_run
        self._others = others
        self._policy = policy
        self._is_current = is_current
        self._said = ""
        self._has_written = others is None or policy != REFUSE

    def block_reason(self, autoscaler: Autoscaler, *, has_change: bool) -> str:
        """Why nothing may be written about the autoscaler now; empty where it may.

        Args:
            has_change: whether anything would be written.
        """
        if self.is_dry_run:
            return DRY_RUN
        if self._is_current is not None and not self._is_current(autoscaler):
            return GONE
        found = self._competing(autoscaler, has_change=has_change) if autoscaler.kind is HPA else ""
        self._has_written = self._has_written or not found
        return found

    def release(self, key: Key) -> None:
        """The autoscaler is gone, or another process looks after it from now on."""
        if self._others is not None:
            self._others.release(key)

    @property
    def has_written_nothing(self) -> bool:
        """Whether nothing at all has been written yet, so that nothing else is to be written either."""
        return self.is_dry_run or not self._has_written

    def unready(self) -> list[str]:
        """Why nothing is written about any autoscaler because of others, and what to do; empty where it may be."""
        if self.is_dry_run or self._others is None or self._policy != REFUSE or not self._others.is_everywhere:
            return []
        return [self._advice(self._others.found)]

    def _competing(self, autoscaler: Autoscaler, *, has_change: bool) -> str:
        if self._others is None or self._policy == IGNORE:
            return ""
        active = self._others.at_work(autoscaler.key, has_change=has_change)
        found = self._others.found
        if found != self._said:
            self._say(found)
        return f"another controller is at work: {active}" if active and self._policy == REFUSE else ""

    def _say(self, active: str) -> None:
        self._said = active
        if not active:
            log.info("no other controller writes the status of horizontalpodautoscalers any more: going on")
        elif self._policy == REFUSE:
            log.warning("%s", self._advice(active))
        else:
            log.warning("another controller writes the status of horizontalpodautoscalers too: %s", active)

    def _advice(self, active: str) -> str:
        return (
            f"another controller writes the status of horizontalpodautoscalers: {active}; nothing is written about "
            f"those until it has been silent for {SILENCE_S:g} s and {PERIODS} of its sync periods (switch it off, or "
            "use --other-controller=ignore)"
        )


def unwritten(decision: Decision) -> str:
    """What a decision that is not carried out would write, and why, in one or two sentences for the log."""
    why = explained.of_decision(decision, TraceSource.CLUSTER).summary
    draft = decision.draft
    if decision.replicas is None or draft is None:
        return f"nothing would be written to its target. {why}"
    return f"would be rescaled from {draft.scale.replicas} to {decision.replicas}: {draft.reason}. {why}"
