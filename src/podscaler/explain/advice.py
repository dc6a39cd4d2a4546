"""Advice for users about failures, by the text of the error.

`podscaler.explain.explained` calls `of`; `podscaler doctor` calls `for_error`. The first entry of `_ADVICE` whose text
occurs in the error applies; other errors have no advice.
New advice: an entry of that table, before those whose texts are part of its own.

Source: the error texts of docs/spec/decision.md 2 (Reconcile in order), 3 (Combining the metrics), 6 (Replica
calculator), 7 (Metrics client).
"""

from podscaler.core.model.trace import Trace
from podscaler.explain.verdict import Verdict, VerdictReason

_WHERE_TO_LOOK = {
    "resource": "see `kubectl get apiservice v1beta1.metrics.k8s.io` and the pods of metrics-server",
    "custom": "see `kubectl get apiservices` and the adapter that serves it",
    "external": "see `kubectl get apiservice v1beta1.external.metrics.k8s.io` and the adapter that serves it",
}
"""Where to look when one of the three metrics APIs fails."""
_UNAVAILABLE = tuple(
    (f"from {api} metrics API: the server is currently unable", f"the {api} metrics API did not answer: {see}")
    for api, see in _WHERE_TO_LOOK.items()
)
_FAILED = tuple(
    (f"from {api} metrics API: ", f"the {api} metrics API answered with an error: {see}")
    for api, see in _WHERE_TO_LOOK.items()
)

# (part of the error, advice)
_ADVICE: tuple[tuple[str, str], ...] = (
    (
        "do not match the selector",
        "add the labels of the metric's selector to the MetricSource, or remove the selector from the metric",
    ),
    (
        "the MetricSource ",
        "the metric is read directly, by a MetricSource of its name: correct its spec, or the system that it reads; "
        "`kubectl describe metricsources.podscaler.dev` shows its condition",
    ),
    (
        "missing request for",
        "set resources.requests of that resource on this container in the target's pod template (a percentage needs "
        "it on every container, sidecars too), or measure one container with a ContainerResource metric, or use an "
        "averageValue target",
    ),
    (
        "missing pod-level request for",
        "add the resource to spec.resources.requests of the target's pod template, or remove the pod-level requests",
    ),
    ("not found in Pod", "correct the container's name in the metric, or add the container to the pod template"),
    (
        "did not receive metrics for targeted pods",
        "no pod has a sample that counts yet: see whether the pods are ready (`kubectl get pods`) and have metrics "
        "(`kubectl top pods`); new pods need a moment",
    ),
    (
        "no metrics returned matched known pods",
        "the pods that have samples request nothing of this resource: a percentage needs requests above 0",
    ),
    (
        "no pods returned by selector",
        "no pod matches the target's selector: compare `kubectl get pods --show-labels` with it",
    ),
    (
        "no metrics returned from resource metrics API",
        "metrics-server has no samples of these pods yet: see `kubectl top pods`; new pods need a moment",
    ),
    (
        "no metrics returned from custom metrics API",
        "the adapter has no value of this metric for these pods: ask it with `kubectl get --raw`",
    ),
    (
        "no metrics returned from external metrics API",
        "the adapter has no series for this metric and selector: compare the metric's selector with the labels there",
    ),
    ("no custom metrics API", "install an adapter that serves custom.metrics.k8s.io, such as prometheus-adapter"),
    ("no known available metric versions", "the adapter serves custom.metrics.k8s.io in no version that is known"),
    ("results when we asked for exactly one", "narrow the metric's selector down until one series is left"),
    ("is forbidden", "grant the controller's user what the error names, in a ClusterRole"),
    ("unable to map kind", "correct kind and apiVersion of the metric's describedObject"),
    (
        "from custom metrics API: the server could not find the metric",
        "the adapter answers, and knows no such metric of this object: compare both names with what "
        "`kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2` lists",
    ),
    (
        "from external metrics API: the server could not find the metric",
        "the adapter answers, and knows no such metric: compare its name with what "
        "`kubectl get --raw /apis/external.metrics.k8s.io/v1beta1` lists",
    ),
    (
        "metrics API: the server could not find the requested resource",
        "no server of this metrics API is registered, or it serves another version: see `kubectl get apiservices`",
    ),
    *_UNAVAILABLE,
    *_FAILED,
    ("unexpected GroupVersion string", "correct spec.scaleTargetRef.apiVersion: it is `group/version`, as `apps/v1`"),
    ("no matches for kind", "correct kind and apiVersion of spec.scaleTargetRef, or install what serves that kind"),
    ("not found", "create the target, or correct spec.scaleTargetRef"),
    ("selector is required", "the target's scale names no selector: its kind must set status.selector"),
    ("couldn't convert selector", "correct the selector of the target"),
    (
        "controlled by more than one HPA",
        "make the selectors of the targets pick different pods, or delete all but one of these autoscalers; until then "
        "none of them scales",
    ),
    ("metric source: ", "set a target of a type that this metric can have"),
    ("unknown metric source type", "correct the metric's type"),
)
_PAUSED_ADVICE = (
    "scale the target to 1 or more by hand to hand it back: an autoscaler leaves a target alone that others scaled to 0"
)


def of(trace: Trace, verdict: Verdict) -> tuple[str, ...]:
    """The advice, most important first; empty if nothing failed, or no entry fits the errors."""
    if verdict.ending is VerdictReason.PAUSED:
        return (_PAUSED_ADVICE,)
    by_error = (for_error(error) for error in _errors(trace, verdict))
    return tuple(dict.fromkeys(advice for advice in by_error if advice))


def _errors(trace: Trace, verdict: Verdict) -> list[str]:
    """The errors of a sync in the order of its steps; empty texts where a step did not fail."""
    errors = [trace.scale_failure]
    if trace.selection is not None and trace.selection.failure is not None:
        errors.append(trace.selection.failure.message)
    errors += [step.failure.message for step in trace.metrics if step.failure is not None]
    return [*errors, verdict.write_error]


def for_error(error: str) -> str:
    """The advice about one error; empty: no entry fits it."""
    return next((advice for text, advice in _ADVICE if text in error), "")
