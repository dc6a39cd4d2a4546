"""Finds the pods of the target, unless its selector is unusable or another autoscaler's selector matches them too.

Called by `podscaler.core.combine` before any metric, and by `podscaler.core.decide` before any query. A new check is
another failure of `find`, whose reason `decide` sets in ScalingActive.

Source: docs/spec/decision.md 3.1 (Selector checks).
"""

from collections.abc import Sequence

from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector, SelectorError
from podscaler.core.model import pod_list
from podscaler.core.model.observation import Fact, Observation, Pod, Scale
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.core.model.trace import MetricFailure, Selection

SELECTOR_REQUIRED = "selector is required"


class TargetPods(Fact, frozen=True, gc=False):
    """The pods of the target, or why they cannot be used.

    Attributes:
        selector: the parsed selector of the scale; None where it is missing or invalid, or where the autoscaler is
            gone: callers then leave the selector that they have stored for it as it is.
        pods: the pods that the selector matches. Where `step.failure` is set they are not to be used; they are empty
            then, unless the failure is that another autoscaler has some of them too.
        step: the selection, for the trace; its `failure` says why the pods cannot be used. A failure without a reason
            (the autoscaler is gone) leads to no event.
    """

    selector: Selector | None
    pods: Sequence[Pod]
    step: Selection


def find(spec: Spec, scale: Scale, observation: Observation, settings: Settings) -> TargetPods:
    """The pods of the observation that the scale's selector matches, or the first failure of the checks."""
    if not scale.selector:
        return _failed_selection(scale, "SelectorRequired", SELECTOR_REQUIRED)
    try:
        selector = selectors.parse(scale.selector)
    except SelectorError as error:
        message = f"couldn't convert selector into a corresponding internal selector object: {error}"
        return _failed_selection(scale, "InvalidSelector", message)
    if not observation.is_registered:
        return _failed_selection(scale, "", f"HPA {spec.key} was deleted during reconciliation")
    pods = pod_list.matching(observation.pods, selector)
    overlapping_keys = _overlapping_keys(spec, pods, observation, settings)
    if overlapping_keys:
        keys = tuple(sorted([spec.key, *overlapping_keys]))
        message = f"pods by selector {scale.selector} are controlled by more than one HPA (e.g. [{' '.join(keys)}])"
        failure = MetricFailure("AmbiguousSelector", message, message)
        return TargetPods(selector, pods, Selection(scale.selector, len(pods), overlapping=keys, failure=failure))
    return TargetPods(selector, pods, Selection(scale.selector, len(pods)))


def _failed_selection(scale: Scale, reason: str, message: str) -> TargetPods:
    failure = MetricFailure(reason, message, error=message)
    return TargetPods(selector=None, pods=(), step=Selection(scale.selector, pods=0, failure=failure))


def _overlapping_keys(spec: Spec, pods: Sequence[Pod], observation: Observation, settings: Settings) -> list[str]:
    """The NAMESPACE/NAME of the other autoscalers whose selectors match some of these pods, sorted.

    With the gate `optimized_selector_store`, as upstream, the first one only.

    Differs: upstream stops at any two autoscalers, in the random order of a hash map; here one of the two is always the
    one that is being synced.
    """
    overlapping_keys = observation.neighbours.sharing(spec.key, pods)
    return sorted(overlapping_keys)[:1] if settings.gates.optimized_selector_store else sorted(overlapping_keys)
