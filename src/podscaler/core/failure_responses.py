"""Applies the failure policy of an autoscaler to the evaluation of its metrics.

Called by `podscaler.core.decide` between the metrics and the limits. `podscaler.core.model.failure_policy` parses the
policy; a new action is also a member of `podscaler.core.model.trace.FailureResponse` and a text in `message`. In order:

1. A metric that cannot be read counts with its last proposal, if that is not older than the policy says.
2. Where some metrics have no proposal, the others may scale down without them, if the policy ignores those.
3. Where no metric has a proposal, the fallback replicas are the proposal, once no metric could be read for long enough.

The proposal then passes stabilization, rates and bounds like any other. What is kept of a metric is its proposal, not
its samples: 10 pods at half of their target propose 5; with 5 pods left, the same samples would propose 3, then 2, as
nothing would show that the load is on fewer pods now.

Invariant: without a policy nothing changes, except that what an earlier policy left in the history is dropped.

Source: docs/metric-failures.md. Differs: Kubernetes has no such policy.
"""

from collections.abc import Sequence

import msgspec

from podscaler.api.machinery import instants
from podscaler.core import combine, proposals
from podscaler.core.combine import MetricsEvaluation
from podscaler.core.decision import AutoscalerEvent, warning
from podscaler.core.model.failure_policy import FailurePolicy
from podscaler.core.model.history import History, LastProposal
from podscaler.core.model.metric_spec import Metric
from podscaler.core.model.observation import Fact
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import Combination, FailurePolicyStep, FailureResponse, KeptProposal
from podscaler.core.proposals import MetricResult

INVALID = "InvalidMetricFailurePolicy"
"""The reason of the event about a policy that is invalid, and therefore does not count."""


class PolicyResult(Fact, frozen=True, gc=False):
    """The metrics after the policy.

    Attributes:
        evaluation: the evaluation with the actions of the policy.
        prior_history: the history before this sync, with the last proposals of this sync.
        warnings: the events about the policy.
        step: the policy, for the trace; None if the autoscaler states none.
    """

    evaluation: MetricsEvaluation
    prior_history: History
    warnings: tuple[AutoscalerEvent, ...] = ()
    step: FailurePolicyStep | None = None


def respond(
    spec: Spec, evaluation: MetricsEvaluation, prior_history: History, *, current: int, now_ns: int
) -> PolicyResult:
    """The result of the policy of `spec` at the instant `now_ns`; without metric results only the policy is recorded.

    Args:
        evaluation: the metrics as Kubernetes combines them.
        prior_history: the history before this sync.
        current: the replicas of the target.
    """
    policy = spec.failure_policy
    if not (policy.keep_last_ns or policy.ignores_failed or policy.fallback):
        cleared_history = _without_last_proposals(prior_history)
        if not policy.fault:
            return PolicyResult(evaluation, cleared_history)
        invalid_step = FailurePolicyStep(fault=policy.fault)
        return PolicyResult(evaluation, cleared_history, (warning(INVALID, policy.fault),), invalid_step)
    if not evaluation.results:
        return PolicyResult(evaluation, prior_history, step=_policy_step(policy, prior_history))
    results = _with_last_proposals(spec, evaluation.results, prior_history, now_ns)
    new_history = _history_after(policy, evaluation.results, prior_history, now_ns)
    combination = _combination_by_policy(policy, results, new_history, current=current, now_ns=now_ns)
    after_policy = msgspec.structs.replace(evaluation, results=results, combination=combination)
    warnings = tuple([warning(response.value, message(response, after_policy)) for response in combination.responses])
    return PolicyResult(after_policy, new_history, warnings, _policy_step(policy, new_history))


def without_unread_since(prior_history: History) -> History:
    """The history after a sync that needs no metric: the next one that reads none is the first in a row."""
    if prior_history.unread_since is None:
        return prior_history
    return msgspec.structs.replace(prior_history, unread_since=None)


def message(response: FailureResponse, evaluation: MetricsEvaluation) -> str:
    """The message of the event and of ScalingActive: with instants, not ages, so that it is the same at most syncs.

    `evaluation` is the one after the policy, with at least one failure.
    """
    failure = evaluation.failures[0].message
    if response is FailureResponse.KEPT:
        steps = [metric_result.step for metric_result in evaluation.results]
        kept_metrics = [
            f"{step.name}, read at {instants.text(step.kept.at)}" for step in steps if step.kept is not None
        ]
        return f"the HPA uses the last value of {' and '.join(kept_metrics)}: {failure}"
    if response is FailureResponse.IGNORED:
        ignored = [
            metric_result.step.name for metric_result in evaluation.results if metric_result.step.proposal is None
        ]
        return f"the HPA ignores {' and '.join(ignored)}: {failure}"
    return f"the HPA applies the fallback replicas ({evaluation.combination.proposal}): {failure}"


def _without_last_proposals(prior_history: History) -> History:
    """The history without the last proposals and the instant of failure, which only a policy needs."""
    if not prior_history.last_proposals and prior_history.unread_since is None:
        return prior_history
    return msgspec.structs.replace(prior_history, last_proposals=(), unread_since=None)


def _with_last_proposals(
    spec: Spec, results: Sequence[MetricResult], prior_history: History, now_ns: int
) -> tuple[MetricResult, ...]:
    """The results; those without a proposal have the last one, where it still counts."""
    policy = spec.failure_policy
    if not policy.keep_last_ns:
        return tuple(results)
    last_proposals = _recent_proposals(policy, prior_history, now_ns)
    results_with_metrics = zip(results, spec.metrics, policy.identities, strict=True)
    return tuple(
        [
            _with_last_proposal(metric_result, metric, last_proposals.get(identity))
            for metric_result, metric, identity in results_with_metrics
        ]
    )


def _recent_proposals(policy: FailurePolicy, prior_history: History, now_ns: int) -> dict[str, LastProposal]:
    """The last proposals that still count at `now_ns`, by the identity of their metric."""
    oldest_ns = now_ns - policy.keep_last_ns
    return {proposal.metric: proposal for proposal in prior_history.last_proposals if proposal.at >= oldest_ns}


def _with_last_proposal(
    metric_result: MetricResult, metric: Metric, last_proposal: LastProposal | None
) -> MetricResult:
    """The result of a metric; one without a proposal has the last one, if there is one that counts."""
    if metric_result.step.proposal is not None or last_proposal is None:
        return metric_result
    step = msgspec.structs.replace(
        metric_result.step, proposal=last_proposal.replicas, kept=KeptProposal(last_proposal.at, last_proposal.current)
    )
    return MetricResult(proposals.status_of(metric, last_proposal.current), step, last_proposal.current)


def _history_after(
    policy: FailurePolicy, results: Sequence[MetricResult], prior_history: History, now_ns: int
) -> History:
    """The history with the proposals that this sync computed, and the instant since which no metric can be read.

    That instant is noted only for a policy with fallback replicas.
    """
    last_proposals = _recent_proposals(policy, prior_history, now_ns)
    if policy.keep_last_ns:
        for metric_result, identity in zip(results, policy.identities, strict=True):
            if metric_result.step.proposal is not None and metric_result.current is not None:
                last_proposals[identity] = LastProposal(
                    identity, metric_result.step.proposal, now_ns, metric_result.current
                )
    identities = dict.fromkeys(policy.identities)  # each once, in the order of the spec
    latest = tuple([last_proposals[identity] for identity in identities if identity in last_proposals])
    is_unread = policy.fallback is not None and all(metric_result.step.proposal is None for metric_result in results)
    unread_since_ns = None
    if is_unread:
        unread_since_ns = now_ns if prior_history.unread_since is None else prior_history.unread_since
    return msgspec.structs.replace(prior_history, last_proposals=latest, unread_since=unread_since_ns)


def _combination_by_policy(
    policy: FailurePolicy, results: Sequence[MetricResult], prior_history: History, *, current: int, now_ns: int
) -> Combination:
    """The combination after the actions of the policy, given the results with the last proposals (rules 1 to 3)."""
    combination = combine.combine_results(results, current)
    responses: list[FailureResponse] = []
    if any(metric_result.step.kept is not None for metric_result in results):
        responses.append(FailureResponse.KEPT)
    if combination.proposal is None and combination.winner is not None and policy.ignores_failed:
        combination = combine.combine_results(results, current, ignores_missing=True)
        responses.append(FailureResponse.IGNORED)
    fallback, unread_since_ns = policy.fallback, prior_history.unread_since
    if (
        combination.winner is None
        and fallback is not None
        and unread_since_ns is not None
        and now_ns - unread_since_ns >= fallback.after_ns
    ):
        combination = msgspec.structs.replace(combination, proposal=fallback.replicas)
        responses.append(FailureResponse.FALLBACK)
    if combination.proposal is None:
        return combination  # a kept value that led to no proposal is no action
    return msgspec.structs.replace(combination, responses=tuple(responses))


def _policy_step(policy: FailurePolicy, prior_history: History) -> FailurePolicyStep:
    """The policy as it is recorded in the trace."""
    fallback = policy.fallback
    return FailurePolicyStep(
        keep_last_ns=policy.keep_last_ns,
        ignores_failed=policy.ignores_failed,
        fallback_replicas=None if fallback is None else fallback.replicas,
        fallback_after_ns=0 if fallback is None else fallback.after_ns,
        unread_since=prior_history.unread_since,
    )
