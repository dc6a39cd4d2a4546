"""Decides whether the controller may write, or is on standby: then it decides and reports, but writes nothing.

The reconciler calls `WriteGate.block_reason` after each decision, and again after a rescale was stored, right before it
writes the scale. A further reason to block writes: a rule and a case of `block_reason`. Rules:

1. A dry run never writes.
2. While another controller is at work on a HorizontalPodAutoscaler
   (`podscaler.controller.informers.other_controllers`), `--other-controller` decides about that one: `refuse` blocks
   writes until the other has been silent, `warn` logs it once and writes, `ignore` does not check. Other controllers do
   not manage PodAutoscalers.
3. A PodAutoscaler that was deleted, or that waits for a migration, is not written any more, even if its sync began
   before.
"""

import logging
from collections.abc import Callable

from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.informers.other_controllers import PERIODS, SILENCE_S, OtherControllers
from podscaler.controller.options.autoscaler_kinds import HPA
from podscaler.core.decision import Decision
from podscaler.explain import explained
from podscaler.explain.explanation_parts import TraceSource
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

REFUSE = "refuse"
WARN = "warn"
IGNORE = "ignore"
POLICIES = (REFUSE, WARN, IGNORE)
DRY_RUN = "this is a dry run"
GONE = "the autoscaler is gone or handed over"


class WriteGate:
    """Decides for each autoscaler whether its sync may write, by the module's rules.

    Args:
        is_dry_run: whether nothing is ever written (rule 1).
        other_controllers: detects other controllers (rule 2); None: rule 2 is not checked.
        policy: one of POLICIES, the value of `--other-controller`.
        is_current: whether an autoscaler may be written (rule 3); None: rule 3 is not checked.
    """

    def __init__(
        self,
        *,
        is_dry_run: bool = False,
        other_controllers: OtherControllers | None = None,
        policy: str = IGNORE,
        is_current: Callable[[Autoscaler], bool] | None = None,
    ) -> None:
        self.is_dry_run = is_dry_run
        self._other_controllers = other_controllers
        self._policy = policy
        self._is_current = is_current
        self._logged_names = ""
        self._has_allowed_writes = other_controllers is None or policy != REFUSE

    def block_reason(self, autoscaler: Autoscaler, *, has_change: bool) -> str:
        """Why nothing may be written about the autoscaler now; empty if it may. The silence of others counts from here.

        Args:
            has_change: whether anything would be written.
        """
        if self.is_dry_run:
            return DRY_RUN
        if self._is_current is not None and not self._is_current(autoscaler):
            return GONE
        reason = self._find_competitor(autoscaler, has_change=has_change) if autoscaler.kind is HPA else ""
        self._has_allowed_writes = self._has_allowed_writes or not reason
        return reason

    def release(self, key: Key) -> None:
        """The autoscaler was deleted, or another process manages it from now on."""
        if self._other_controllers is not None:
            self._other_controllers.release(key)

    @property
    def has_never_allowed_writes(self) -> bool:
        """Whether no write was ever allowed, so that histories and settings are not written either."""
        return self.is_dry_run or not self._has_allowed_writes

    def unready(self) -> list[str]:
        """Why other controllers block the writes about every autoscaler, and what to do; empty: writes are allowed."""
        if (
            self.is_dry_run
            or self._other_controllers is None
            or self._policy != REFUSE
            or not self._other_controllers.competes_everywhere
        ):
            return []
        return [self._advice(self._other_controllers.all_competing)]

    def _find_competitor(self, autoscaler: Autoscaler, *, has_change: bool) -> str:
        """Which other controller blocks writes (rule 2), empty if none; logs when that changes for any autoscaler."""
        if self._other_controllers is None or self._policy == IGNORE:
            return ""
        active = self._other_controllers.update_competing(autoscaler.key, has_change=has_change)
        active_anywhere = self._other_controllers.all_competing
        if active_anywhere != self._logged_names:
            self._log_change(active_anywhere)
        return f"another controller is at work: {active}" if active and self._policy == REFUSE else ""

    def _log_change(self, active: str) -> None:
        """Log which other controllers are active now; `active` is empty when the last of them is silent."""
        self._logged_names = active
        if not active:
            log.info("no other controller writes the status of horizontalpodautoscalers any more: going on")
        elif self._policy == REFUSE:
            log.warning("%s", self._advice(active))
        else:
            log.warning("another controller writes the status of horizontalpodautoscalers too: %s", active)

    def _advice(self, active: str) -> str:
        """The sentence that says why nothing is written, and what the user can do."""
        return (
            f"another controller writes the status of horizontalpodautoscalers: {active}; nothing is written about "
            f"those until it has been silent for {SILENCE_S:g} s and {PERIODS} of its sync periods (switch it off, or "
            "use --other-controller=ignore)"
        )


def unwritten(decision: Decision) -> str:
    """What a decision on standby would write, and why, in one or two sentences for the log."""
    summary = explained.of_decision(decision, TraceSource.CLUSTER).summary
    draft = decision.draft
    if decision.replicas is None or draft is None:
        return f"nothing would be written to its target. {summary}"
    return f"would be rescaled from {draft.scale.replicas} to {decision.replicas}: {draft.reason}. {summary}"
