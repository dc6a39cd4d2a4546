"""Phrases about metrics that cannot be read: the failure policy, last values and their ages, fallback replicas.

Called by `sentence`, `steps`, `metric_steps` and `limit_steps`. A further part of failure policies: a clause in
`_clauses`.

Source: docs/metric-failures.md.
"""

from collections.abc import Iterable

from podscaler.api.machinery import instants
from podscaler.core.model.trace import FailurePolicyStep, FailureResponse, MetricStep, Trace
from podscaler.explain import metric_words, wording
from podscaler.explain.explanation_parts import Line


def has_fallback(trace: Trace) -> bool:
    """Whether the fallback replicas are the proposal."""
    return FailureResponse.FALLBACK in _responses(trace)


def ignores_failed(trace: Trace) -> bool:
    """Whether the target is scaled down although a metric cannot be read."""
    return FailureResponse.IGNORED in _responses(trace)


def _responses(trace: Trace) -> tuple[FailureResponse, ...]:
    return trace.combination.responses if trace.combination is not None else ()


def fallback(trace: Trace) -> str:
    """A clause: `no metric can be read for 10 min, and the fallback replicas are 3`."""
    policy = trace.failure_policy
    unread_since = policy.unread_since if policy is not None else None
    replicas = trace.combination.proposal if trace.combination is not None else None
    duration = (
        f" for {wording.span(trace.now - unread_since)}"
        if unread_since is not None and unread_since < trace.now
        else ""
    )
    return f"no metric can be read{duration}, and the fallback replicas are {replicas}"


def value_and_target(trace: Trace, step: MetricStep) -> str:
    """A clause about a metric whose last proposal counts; others have `metric_words.value_and_target`."""
    if step.kept is None:
        return metric_words.value_and_target(step)
    target = metric_words.target(step)
    return f"{metric_words.name(step)} cannot be read, and was {last_value(trace, step)}, target {target}"


def last_value(trace: Trace, step: MetricStep) -> str:
    """The earlier value that counts, and its age: `81 % of requests 2 min 10 s ago`; empty if none counts."""
    kept = step.kept
    if kept is None:
        return ""
    if kept.current.average_utilization is not None:
        value = f"{kept.current.average_utilization} % of requests"
    elif kept.current.average_value is not None:
        value = f"{kept.current.average_value} a pod"
    else:
        value = kept.current.value or "unknown"
    return f"{value} {wording.age(kept.at, trace.now)}"


def lines(trace: Trace) -> Iterable[Line]:
    """The failure policy, where the autoscaler states one."""
    policy = trace.failure_policy
    if policy is None:
        return
    if policy.fault:
        yield Line("policy", f"the failure policy is invalid and does not count: {policy.fault}")
        return
    yield Line("policy", f"for metrics that fail: {', '.join(_clauses(policy))}")
    if policy.unread_since is not None:
        unread_ago = wording.age(policy.unread_since, trace.now)
        yield Line("unread", f"no metric can be read since {instants.text(policy.unread_since)}, {unread_ago}")


def _clauses(policy: FailurePolicyStep) -> Iterable[str]:
    """What a failure policy does while metrics fail, a clause for each of its parts."""
    if policy.keep_last_ns:
        yield f"their last values count for {wording.span(policy.keep_last_ns)}"
    if policy.ignores_failed:
        yield "the others may scale down"
    if policy.fallback_replicas is not None:
        delay_text = f"after {wording.span(policy.fallback_after_ns)} without any metric"
        yield f"{wording.count(policy.fallback_replicas, 'replica')} {delay_text}"
