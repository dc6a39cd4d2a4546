"""What another controller writes into the status, held against our own decisions about the same autoscalers.

With `--compare` the reconciler shows each decision to `DecisionComparison.judge`; nothing is written. Two controllers
look at different moments, so that a difference is one only where that explains nothing. Rules, in order:

1. A status that does not know the latest spec, or of a target that had other replicas than in any of our last looks,
   cannot be compared (`unsettled`).
2. The same replicas, conditions aside: `same`, if the conditions of one of our last looks are the same too.
3. Replicas between those of our last looks, or what our rules make of the metrics that the other reported
   (`podscaler.core.replay.resampled`): `sampling`, the other saw another moment.
4. Until we have watched for as long as the windows that can explain the difference: `history`, the other remembers
   what we cannot. A count that it holds above ours is explained by its windows for scaling down; a count below ours, or
   a scale-up beyond ours, by those for scaling up, which are 15 s unless a behavior says otherwise.
5. What is left is `different`: a rescale at once, anything else when it is still so at our next look. It is logged with
   our explanation and counted once until it changes.
"""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.base.clock import NANOSECONDS
from podscaler.controller.coexistence import standby
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.observed import ObservedSync
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.core import decide
from podscaler.core.decision import Decision
from podscaler.core.model.conditions import ABLE_TO_SCALE, SCALING_ACTIVE, SCALING_LIMITED
from podscaler.core.model.history import History
from podscaler.core.model.model import Observation, Scale
from podscaler.core.model.spec import Spec
from podscaler.core.replay import resampled
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

SYNCS = 4
"""How many of our last looks count: those of the other's last period, and one to each side."""
ABLE = frozenset({"SucceededRescale", "ReadyForNewScale", "SucceededGetScale"})
"""Reasons that only tell whether the last sync rescaled, which a controller that writes nothing never has."""
SCALE_UP_PERIOD_NS = 15 * NANOSECONDS
"""The period of the policies for scaling up where there is no behavior."""
COMPARED = (ABLE_TO_SCALE, SCALING_ACTIVE, SCALING_LIMITED)

SAME, UNSETTLED, SAMPLING, HISTORY, DIFFERENT = "same", "unsettled", "sampling", "history", "different"
VERDICTS = (SAME, SAMPLING, HISTORY, UNSETTLED, DIFFERENT)

Told = dict[str, tuple[str, str]]
"""Conditions by type: status and reason."""


class _OwnSync(NamedTuple):
    """One of our looks."""

    at_ns: int
    replicas: int
    observation: Observation
    past: History
    decision: Decision

    @property
    def desired(self) -> int:
        return self.decision.status.desired_replicas


class _Compared:
    """What is known of one autoscaler."""

    def __init__(self, since_ns: int) -> None:
        self.since_ns = since_ns
        self.syncs: deque[_OwnSync] = deque(maxlen=SYNCS)
        self.suspected = ""
        self.said = ""
        self.has_differed = False


class DecisionComparison:
    """See the module's rules.

    Args:
        telemetry: where verdicts are counted.
        settings: by which decisions are taken.
    """

    def __init__(self, telemetry: Telemetry, settings: ControllerSettings) -> None:
        self._telemetry = telemetry
        self._flags = settings.decision
        self._compared: dict[Key, _Compared] = {}
        self._verdicts: Counter[str] = Counter()
        self._differed = 0
        telemetry.count_comparisons(VERDICTS)

    def judge(self, autoscaler: Autoscaler, seen: ObservedSync, past: History, decision: Decision) -> None:
        """Hold a decision against the status that the autoscaler has."""
        now_ns, scale = decision.trace.now, seen.observation.scale
        known = self._compared.setdefault(autoscaler.key, _Compared(now_ns))
        if isinstance(scale, Scale):
            known.syncs.append(_OwnSync(now_ns, scale.replicas, seen.observation, past, decision))
        verdict, what = self._verdict(autoscaler, known, decision)
        is_confirmed = verdict == DIFFERENT and (what == known.suspected or _is_rescale(autoscaler.wire.status))
        known.suspected = what
        self._count(autoscaler, known, UNSETTLED if verdict == DIFFERENT and not is_confirmed else verdict, what)

    def forget(self, key: Key) -> None:
        """The autoscaler is gone."""
        self._compared.pop(key, None)

    def log_summary(self) -> None:
        """Log all verdicts in one sentence."""
        counts = ", ".join(f"{self._verdicts[verdict]} {verdict}" for verdict in VERDICTS)
        compared = f"compared {self._verdicts.total()} decisions about {len(self._compared)} autoscalers"
        log.info("%s: %s; %d autoscalers differed", compared, counts, self._differed)

    def _verdict(self, autoscaler: Autoscaler, known: _Compared, decision: Decision) -> tuple[str, str]:
        """The verdict, and what differs (empty where nothing does)."""
        theirs = autoscaler.wire.status
        syncs = [look for look in known.syncs if look.replicas == theirs.current_replicas]
        if not theirs.conditions or not _is_up_to_date(autoscaler) or not syncs:
            return UNSETTLED, ""
        desired = {look.desired for look in syncs}
        if theirs.desired_replicas not in desired:
            what = f"desiredReplicas {theirs.desired_replicas}, here {syncs[-1].desired}"
            if min(desired) < theirs.desired_replicas < max(desired) or self._follows(autoscaler.spec, syncs, theirs):
                return SAMPLING, what
            is_held = syncs[-1].desired < theirs.desired_replicas <= theirs.current_replicas
            windows = self._down_windows if is_held else self._up_windows
            return self._unless_remembered(windows(autoscaler.spec), known, decision), what
        what = "; ".join(_differing_conditions(_told(theirs), [_told(look.decision.status) for look in syncs]))
        windows_ns = [*self._down_windows(autoscaler.spec), *self._up_windows(autoscaler.spec)]
        return (self._unless_remembered(windows_ns, known, decision), what) if what else (SAME, "")

    def _follows(self, spec: Spec, syncs: Sequence[_OwnSync], theirs: HorizontalPodAutoscalerStatus) -> bool:
        """Whether our rules give the other's replicas for the metrics that it reported."""
        for look in syncs:
            spans = resampled.between(look.observation, look.decision.status, theirs)
            if spans is None:
                continue
            low, high = sorted(
                decide.decide(spec, each, look.past, look.at_ns, self._flags).status.desired_replicas for each in spans
            )
            if low <= theirs.desired_replicas <= high:
                return True
        return False

    def _down_windows(self, spec: Spec) -> list[int]:
        """For how long (ns) what was recommended or removed may hold a count up."""
        windows_ns = [self._flags.downscale_stabilization_ns]
        if spec.behavior is not None:
            windows_ns += [spec.behavior.down.window_ns or 0, spec.behavior.down.longest_period_ns]
        return windows_ns

    def _up_windows(self, spec: Spec) -> list[int]:
        """For how long (ns) what was recommended or added may hold a count down."""
        if spec.behavior is None:
            return [SCALE_UP_PERIOD_NS]
        return [spec.behavior.up.window_ns or 0, spec.behavior.up.longest_period_ns]

    def _unless_remembered(self, windows_ns: Sequence[int], known: _Compared, decision: Decision) -> str:
        return HISTORY if decision.trace.now - known.since_ns < max(windows_ns) else DIFFERENT

    def _count(self, autoscaler: Autoscaler, known: _Compared, verdict: str, what: str) -> None:
        self._verdicts[verdict] += 1
        self._telemetry.compared(verdict)
        if verdict != DIFFERENT:
            known.said = "" if verdict == SAME else known.said
            return
        self._differed += not known.has_differed
        known.has_differed = True
        if known.said != what:
            known.said = what
            self._telemetry.differed("desiredReplicas" if what.startswith("desiredReplicas") else "conditions")
            decision = known.syncs[-1].decision
            log.warning("%s differs: the status says %s; %s", autoscaler.described, what, standby.unwritten(decision))


def _is_up_to_date(autoscaler: Autoscaler) -> bool:
    """Whether the status was written for the latest spec."""
    observed = autoscaler.wire.status.observed_generation
    return observed is None or observed >= autoscaler.metadata.generation


def _is_rescale(status: HorizontalPodAutoscalerStatus) -> bool:
    return status.current_replicas != status.desired_replicas


def _told(status: HorizontalPodAutoscalerStatus) -> Told:
    return {
        each.type: (each.status, "able" if each.reason in ABLE else each.reason)
        for each in status.conditions or ()
        if each.type in COMPARED
    }


def _differing_conditions(theirs: Told, ours: Sequence[Told]) -> Iterable[str]:
    """Those that none of our looks had."""
    for name in COMPARED:
        if all(each.get(name) != theirs.get(name) for each in ours):
            yield f"{name} {_words(theirs.get(name))}, here {_words(ours[-1].get(name))}"


def _words(condition: tuple[str, str] | None) -> str:
    return "absent" if condition is None else " ".join(condition)
