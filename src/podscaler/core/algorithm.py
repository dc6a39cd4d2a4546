"""Defines the autoscaling algorithms (current, v1.1) as records with a function for each stage in which they differ.

`podscaler.core.model.settings` names the algorithm that applies; the stages of `podscaler.core.decide` call the
functions of its Algorithm and do not compare its name. A new algorithm: a constant here, an entry of `_BY_NAME`, and
its name in `settings.ALGORITHMS`.

Source: docs/spec/decision.md; the design document of Kubernetes v1.1.
"""

from collections.abc import Callable, Mapping

from podscaler.api.typed.autoscaling import HorizontalPodAutoscaler
from podscaler.core import algorithm_v1_1
from podscaler.core.calculation import calculation_types, per_pod, totals
from podscaler.core.calculation.calculation_types import Proposal, Tolerance
from podscaler.core.limits import cooldown, normalisation
from podscaler.core.limits.cooldown import Delays
from podscaler.core.limits.normalisation import NormalisationInput, Normalised
from podscaler.core.model import annotated_metrics
from podscaler.core.model.annotated_metrics import CompletedAutoscaler
from podscaler.core.model.metric_spec import (
    ExternalMetric,
    Metric,
    ObjectMetric,
    PodsMetric,
    ResourceMetric,
    UnknownMetric,
)
from podscaler.core.model.observation import Fact
from podscaler.core.model.settings import SECOND_NS, Settings
from podscaler.core.model.spec import Spec


class Algorithm(Fact, frozen=True, gc=False):
    """One algorithm.

    Attributes:
        propose: by type of metric, (metric, measurement, situation) -> its proposal.
        tolerance: how far a ratio may be from 1.0 without a change.
        normalise: limits the replicas that the metrics propose.
        delays: the delays of each direction after a rescale, where no flag sets them.
        scales_to_zero: whether a target may be scaled to and from zero.
        complete: adds the metrics that the algorithm reads from annotations.
    """

    propose: Mapping[type[Metric], Callable[..., Proposal]]
    tolerance: Callable[[Spec, Settings], Tolerance]
    normalise: Callable[[NormalisationInput], Normalised]
    delays: Delays
    scales_to_zero: bool
    complete: Callable[[HorizontalPodAutoscaler], CompletedAutoscaler]


CURRENT = Algorithm(
    propose={
        ResourceMetric: per_pod.propose_resource,
        PodsMetric: per_pod.propose_pods,
        ObjectMetric: totals.propose_object,
        ExternalMetric: totals.propose_external,
    },
    tolerance=calculation_types.tolerance,
    normalise=normalisation.by_windows,
    delays=cooldown.NO_DELAYS,
    scales_to_zero=True,
    complete=annotated_metrics.without_annotated_metrics,
)
"""The algorithm of current Kubernetes."""

V1_1 = Algorithm(
    propose=dict.fromkeys(
        (ResourceMetric, PodsMetric, ObjectMetric, ExternalMetric, UnknownMetric), algorithm_v1_1.propose
    ),
    tolerance=algorithm_v1_1.tolerance,
    normalise=algorithm_v1_1.within_bounds,
    delays=Delays(up_ns=180 * SECOND_NS, down_ns=300 * SECOND_NS),
    scales_to_zero=False,
    complete=annotated_metrics.with_annotated_metrics,
)
"""The algorithm of Kubernetes v1.1."""

_BY_NAME = {"current": CURRENT, "v1.1": V1_1}


def of(settings: Settings) -> Algorithm:
    """The algorithm that the settings name."""
    return _BY_NAME[settings.algorithm]


def delays(settings: Settings) -> Delays:
    """The delays of the flags, or of the algorithm where a flag is not given."""
    defaults = of(settings).delays
    up_ns, down_ns = settings.upscale_delay_ns, settings.downscale_delay_ns
    if up_ns is None and down_ns is None:
        return defaults
    return Delays(defaults.up_ns if up_ns is None else up_ns, defaults.down_ns if down_ns is None else down_ns)
