"""Decides about one autoscaler: from an observation to the replicas, status and events, as a pure function.

Called by `podscaler.controller.reconcile`, `podscaler.core.replay`, `podscaler.simulation.engine` and `podscaler
explain`. Example: 4 replicas at 90 % of their requested CPU, with a target of 60 %, become 6. The stages in order: the
branch (`branch`), the pods of the target (`target_pods`), the metrics (`proposals`, `combine`), the autoscaler's
failure policy where it states one (`failure_responses`), stabilization, rates and bounds (`normalisation`), cooldowns
where there are any (`cooldown`), and the write of the scale (`settle`). Where algorithms differ, the record of the one
that applies is used (`algorithm`). A new stage: a call in `_by_metrics` or `_from_limits`, and its step in `Draft` and
`Trace`.

Invariants: no clock, no randomness, no input is changed; the same arguments give the same decision.

Source: docs/spec/decision.md 2 (Reconcile in order).
"""

from typing import Any

import msgspec

from podscaler.api.machinery import instants
from podscaler.api.machinery.selectors import Selector
from podscaler.core import algorithm, branch, combine, failure_responses, settle
from podscaler.core.branch import NoScale
from podscaler.core.calculation import target_pods
from podscaler.core.combine import MetricsEvaluation
from podscaler.core.decision import Decision, Draft, ErrorKind, warning
from podscaler.core.limits import bounds, cooldown
from podscaler.core.limits.normalisation import NormalisationInput, Normalised
from podscaler.core.model import history, settings
from podscaler.core.model.conditions import ABLE_TO_SCALE, SCALED_TO_ZERO, SCALING_ACTIVE, SCALING_LIMITED, Conditions
from podscaler.core.model.history import History
from podscaler.core.model.metric_spec import Metric
from podscaler.core.model.observation import Fact, Observation, Scale
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Branch, Cooldown, FailureResponse, MetricFailure, Trace

ABOVE_MAXIMUM = "Current number of replicas above Spec.MaxReplicas"
BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"
BELOW_TARGET = "All metrics below target"
FALLBACK = "no metric could be read, fallback replicas"
"""Reasons of a rescale, for its event; all but FALLBACK are those of the HPA controller."""


def decide(
    spec: Spec, observation: Observation, prior_history: History, now_ns: int, flags: Settings = settings.DEFAULT
) -> Decision:
    """The decision about the autoscaler `spec` at the instant `now_ns`.

    The decision is complete as if the scale were written at once; where it is not, `podscaler.core.settle` returns the
    one for what really happened. Raises IncompleteObservation if a measurement is missing or of another type
    (`needed_metrics` returns which are needed), ValueError for a `lastScaleTime` that is no time.
    """
    scale = branch.scale_of(spec, observation.scale)
    if isinstance(scale, NoScale):
        return _without_scale(spec, observation, prior_history, now_ns, no_scale=scale, flags=flags)
    sync = _Sync(spec, observation, scale, now_ns, flags)
    started_history = history.with_first_recommendation(prior_history, scale.replicas, now_ns)
    if sync.branch is Branch.METRICS:
        return _by_metrics(sync, started_history)
    if sync.branch is Branch.DISABLED:
        return _decide_disabled(sync, started_history)
    if sync.branch is Branch.ABOVE_MAXIMUM:
        return settle.written(sync.draft(started_history, spec.max_replicas, ABOVE_MAXIMUM), now_ns)
    return settle.written(sync.draft(started_history, spec.min_replicas, BELOW_MINIMUM), now_ns)


class Demand(Fact, frozen=True, gc=False):
    """The metrics that a decision needs.

    Attributes:
        metrics: for each entry of `spec.metrics` the metric to query; None if no query is needed.
        selector: the label selector of the target's pods, for the queries; None if no query is needed.
    """

    metrics: tuple[Metric | None, ...]
    selector: Selector | None = None


def needed_metrics(spec: Spec, observation: Observation, flags: Settings = settings.DEFAULT) -> Demand:
    """The metrics that `decide` needs for this observation, whose own `metrics` are ignored.

    It runs the same stages as `decide`. Source: docs/spec/decision.md 2 (Reconcile in order, step 9), 3.1 (Selector
    checks), 3.3 (Failure of one metric).
    """
    nothing = Demand((None,) * len(spec.metrics))
    scale = branch.scale_of(spec, observation.scale)
    if isinstance(scale, NoScale):
        return nothing
    zero = branch.zero_rules(spec, observation.status, flags)
    if branch.choose(spec, zero, scale.replicas) is not Branch.METRICS:
        return nothing
    target = target_pods.find(spec, scale, observation, flags)
    if target.step.failure is not None:
        return nothing
    return Demand(tuple([None if metric.fault else metric for metric in spec.metrics]), target.selector)


class _Sync:
    """The inputs of one sync that has a scale, and its branch; the stages change its conditions."""

    def __init__(self, spec: Spec, observation: Observation, scale: Scale, now_ns: int, flags: Settings) -> None:
        self.spec = spec
        self.observation = observation
        self.scale = scale
        self.now_ns = now_ns
        self.flags = flags
        self.algorithm = algorithm.of(flags)
        self.zero = branch.zero_rules(spec, observation.status, flags)
        self.branch = branch.choose(spec, self.zero, scale.replicas)
        self.conditions = Conditions(observation.status.conditions or (), instants.text(now_ns))
        message = "the HPA controller was able to get the target's current scale"
        self.conditions.set(ABLE_TO_SCALE, "True", "SucceededGetScale", message)

    def draft(self, prior_history: History, desired: int, reason: str, **parts: Any) -> Draft:
        """The draft; `parts` are the fields of Draft that not every branch has."""
        return Draft(
            spec=self.spec,
            observation=self.observation,
            settings=self.flags,
            scale=self.scale,
            now_ns=self.now_ns,
            branch=self.branch,
            zero=self.zero,
            desired=desired,
            reason=reason,
            conditions=self.conditions.as_tuple(),
            prior_history=prior_history,
            **parts,
        )


def _without_scale(
    spec: Spec, observation: Observation, prior_history: History, now_ns: int, *, no_scale: NoScale, flags: Settings
) -> Decision:
    """The decision without a scale: only conditions change; replicas, metrics and observedGeneration stay."""
    old_conditions = observation.status.conditions or ()
    conditions = Conditions(old_conditions, instants.text(now_ns))
    message = f"the HPA controller was unable to get the target's current scale: {no_scale.message}"
    conditions.set(ABLE_TO_SCALE, "False", "FailedGetScale", message)
    error = f"{no_scale.prefix}{no_scale.message}"
    return Decision(
        replicas=None,
        status=msgspec.structs.replace(observation.status, conditions=conditions.as_tuple()),
        events=(warning("FailedGetScale", no_scale.message),),
        history=prior_history,
        trace=Trace(
            now=now_ns,
            autoscaler=spec.key,
            version=flags.emulation.version,
            branch=Branch.NO_SCALE,
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            conditions_before=old_conditions,
            scale_failure=no_scale.message,
            error=error,
            algorithm=flags.algorithm_shown,
        ),
        error=error,
        error_kind=ErrorKind.SPEC if no_scale.is_spec_error else ErrorKind.INTERNAL,
    )


def _decide_disabled(sync: _Sync, prior_history: History) -> Decision:
    """The decision about a target with zero replicas that this autoscaler must not scale up."""
    message = "scaling is disabled since the replica count of the target is zero"
    sync.conditions.set(SCALING_ACTIVE, "False", "ScalingDisabled", message)
    if not sync.zero.is_enabled:
        sync.conditions.remove(SCALED_TO_ZERO)
    return settle.unscaled(sync.draft(failure_responses.without_unread_since(prior_history), 0, ""))


def _by_metrics(sync: _Sync, prior_history: History) -> Decision:
    """The decision of a sync whose target is within its bounds: metrics, failure policy, normalisation."""
    spec, scale = sync.spec, sync.scale
    tolerance = sync.algorithm.tolerance(spec, sync.flags)
    without_policy = combine.evaluate(
        spec, scale, sync.observation, now_ns=sync.now_ns, tolerance=tolerance, settings=sync.flags
    )
    policy_result = failure_responses.respond(
        spec, without_policy, prior_history, current=scale.replicas, now_ns=sync.now_ns
    )
    evaluation, policy_history = policy_result.evaluation, policy_result.prior_history
    _set_scaling_active(sync.conditions, evaluation)
    parts = {
        "evaluation": evaluation,
        "tolerance": tolerance,
        "events": (
            *[warning(failure.reason, failure.message) for failure in evaluation.failures if failure.reason],
            *policy_result.warnings,
        ),
        "failure_policy": policy_result.step,
    }
    proposal = evaluation.combination.proposal
    if proposal is None:
        return settle.inconclusive(sync.draft(policy_history, scale.replicas, "", **parts))
    proposed_replicas = max(proposal, 0)  # a proposal is negative after an overflow
    normalised = sync.algorithm.normalise(
        NormalisationInput(
            spec=spec,
            prior_history=policy_history,
            proposal=proposed_replicas,
            current=scale.replicas,
            now_ns=sync.now_ns,
            settings=sync.flags,
        )
    )
    _set_limit_conditions(sync.conditions, normalised)
    new_history = msgspec.structs.replace(policy_history, recommendations=normalised.stabilized.recommendations)
    reason = _rescale_reason(proposed_replicas, scale.replicas, evaluation)
    return _from_limits(sync, new_history, reason, normalised, **parts)


def _from_limits(sync: _Sync, prior_history: History, reason: str, normalised: Normalised, **parts: Any) -> Decision:
    """The decision, given the count within rates and bounds; `reason` is that of a rescale."""
    current, desired, is_lifted = sync.scale.replicas, normalised.limits.result, False
    # From zero the limits may leave a count below the minimum; upstream raises it after all of them.
    if current == 0 and sync.zero.was_scaled_to_zero and desired < sync.spec.min_replicas:
        desired, is_lifted = sync.spec.min_replicas, True
        reason = reason or BELOW_MINIMUM
    cooldown_step = _apply_cooldown(sync, desired)
    if cooldown_step is not None and cooldown_step.held is not None:
        desired = current
    draft = sync.draft(
        prior_history,
        desired,
        reason if desired != current else "",
        stabilization=normalised.stabilized.step,
        limits=normalised.limits,
        is_lifted=is_lifted,
        cooldown=cooldown_step,
        **parts,
    )
    return settle.unscaled(draft) if desired == current else settle.written(draft, sync.now_ns)


def _apply_cooldown(sync: _Sync, desired: int) -> Cooldown | None:
    """The cooldown, None if there are no delays; while it runs, the condition AbleToScale is set to False."""
    cooldown_step = cooldown.of(algorithm.delays(sync.flags), sync.observation.status.last_scale_time, sync.now_ns)
    if cooldown_step is None or not cooldown_step.is_running:
        return cooldown_step
    reason = cooldown.reason(cooldown_step)
    sync.conditions.restore(ABLE_TO_SCALE)  # earlier stages set it to True; its transition time is to stay
    sync.conditions.set(ABLE_TO_SCALE, "False", reason, cooldown.MESSAGES[reason])
    is_held = cooldown.holds(cooldown_step, desired, sync.scale.replicas)
    return msgspec.structs.replace(cooldown_step, held=desired) if is_held else cooldown_step


def _set_limit_conditions(conditions: Conditions, normalised: Normalised) -> None:
    """Set the conditions AbleToScale and ScalingLimited by stabilization, rates and bounds."""
    limits = normalised.limits
    conditions.set(ABLE_TO_SCALE, "True", *normalised.stabilized.condition)
    is_limited = limits.result != limits.wanted
    conditions.set(SCALING_LIMITED, str(is_limited), limits.reason, bounds.MESSAGES[limits.reason])


def _set_scaling_active(conditions: Conditions, evaluation: MetricsEvaluation) -> None:
    """Set the condition ScalingActive: by a failure policy that acted, a valid metric, or the first failure."""
    responses = evaluation.combination.responses
    if responses:
        latest = responses[-1]
        conditions.set(SCALING_ACTIVE, "True", latest.value, failure_responses.message(latest, evaluation))
        return
    if evaluation.combination.proposal is not None:
        message = f"the HPA was able to successfully calculate a replica count from {evaluation.winner_name}"
        conditions.set(SCALING_ACTIVE, "True", "ValidMetricFound", message)
        return
    failure = evaluation.failures[0]
    if not evaluation.results:
        _set_selection_failure(conditions, failure)
        return
    message = f"the HPA was unable to compute the replica count: {failure.message}"
    conditions.set(SCALING_ACTIVE, "False", failure.reason, message)


def _set_selection_failure(conditions: Conditions, failure: MetricFailure) -> None:
    """Set ScalingActive where the target's pods cannot be used; not where the autoscaler is gone (no reason)."""
    if failure.reason == "SelectorRequired":
        message = "the HPA target's scale is missing a selector"
        conditions.set(SCALING_ACTIVE, "False", "InvalidSelector", message)
    elif failure.reason:
        conditions.set(SCALING_ACTIVE, "False", failure.reason, failure.message)


def _rescale_reason(proposed_replicas: int, current: int, evaluation: MetricsEvaluation) -> str:
    """The reason of a rescale, from before stabilization and limits; empty if the metrics want no change."""
    if proposed_replicas != current and FailureResponse.FALLBACK in evaluation.combination.responses:
        return FALLBACK
    if proposed_replicas > current:
        return f"{evaluation.winner_name} above target"
    return BELOW_TARGET if proposed_replicas < current else ""
