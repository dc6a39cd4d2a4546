"""Makes the candidates of each autoscaler of a fleet: its present spec, changed fields, fixed counts, and hindsight.

`podscaler backtest --fleet` makes one FleetTrials, which is pickled for the workers: so candidates make their scalers
by `partial`. Hindsight scales by the load that is to come, as no autoscaler can; Knative is the algorithm of its
autoscaler (`podscaler.simulation.evaluation.knative`).
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from podscaler.base.errors import UsageError
from podscaler.core.model import spec as core_spec
from podscaler.explain import what_if
from podscaler.simulation.evaluation import candidates, demand
from podscaler.simulation.evaluation.candidates import FixedCount, Hindsight
from podscaler.simulation.evaluation.comparison import Candidate, Needs
from podscaler.simulation.evaluation.knative import Knative, KnativeConfig
from podscaler.simulation.fleet.autoscalers import FleetAutoscaler, Trial

PRESENT = "present"
NEEDED_PODS_MAX = 20_000
"""More needed pods than this are taken for a wrong capacity."""


class FleetTrials(msgspec.Struct, frozen=True, kw_only=True):
    """Makes the trial of each autoscaler with the same kinds of candidates; a `fleet.autoscalers.MakeTrial`.

    Attributes:
        changes: texts as those of `explain --what-if`, one candidate each.
        fixed: counts of pods.
        has_knative, has_hindsight: whether these are compared.
        slo_ms: the mean response time to meet; None if there is none.
        capacity_milli: of a pod, in thousandths of a core; None: its limit, or else its request.
    """

    changes: tuple[str, ...] = ()
    fixed: tuple[int, ...] = ()
    has_knative: bool = False
    has_hindsight: bool = False
    slo_ms: float | None = None
    capacity_milli: int | None = None

    @property
    def description(self) -> str:
        """A text that differs where the trials do."""
        return msgspec.json.encode(self).decode()

    def __call__(self, autoscaler: FleetAutoscaler, /) -> Trial:
        """The candidates of an autoscaler, and the pods that its load needs. Raises UsageError, ValueError."""
        needs = self._make_needs(autoscaler)
        return Trial(candidates=tuple(self._make_candidates(autoscaler, needs)), needs=needs)

    def _make_needs(self, autoscaler: FleetAutoscaler) -> Needs:
        """The pods that the load needs. Raises UsageError or ValueError where they cannot be known."""
        (workload,) = autoscaler.scenario.workloads  # a FleetAutoscaler has one workload and one autoscaler
        capacity = demand.pod_capacity(workload, slo_ms=self.slo_ms, stated_milli=self.capacity_milli)
        needed_series = demand.needed_series(demand.cpu_demand(workload), capacity)
        needed_max = max(needed_series.values)
        if needed_max > NEEDED_PODS_MAX:
            raise UsageError(
                f"the load needs up to {needed_max:,} pods of {capacity.ucores / 1e6:g} CPU; the capacity is wrong"
            )
        return Needs(capacity=capacity, pods=needed_series, slo_ms=self.slo_ms)

    def _make_candidates(self, autoscaler: FleetAutoscaler, needs: Needs) -> Iterator[Candidate]:
        """The candidates, the present spec first. A new kind: a field of this class, and its candidates here.

        Raises UsageError for a change that is not one of a valid spec.
        """
        present_spec = autoscaler.scenario.autoscalers[0].spec
        yield Candidate(name=PRESENT, policy=present_spec)
        for change_text in self.changes:
            yield _changed_candidate(change_text, autoscaler)
        for count in self.fixed:
            yield Candidate(name=f"fixed {count}", policy=partial(FixedCount, count), replicas=count)
        if self.has_knative:
            # without the SLO: the target of Knative is a share of what a pod can do at most
            full_capacity = demand.pod_capacity(autoscaler.scenario.workloads[0], stated_milli=self.capacity_milli)
            config = KnativeConfig(
                target_ucores=full_capacity.ucores,
                min_replicas=max(present_spec.min_replicas, 1),  # its scale to zero is not simulated
                max_replicas=present_spec.max_replicas,
            )
            yield Candidate(name="Knative", policy=partial(Knative, config))
        if self.has_hindsight:
            scenario = autoscaler.scenario
            lead_ms, tick_ms = candidates.lead_ms(scenario.workloads[0], scenario), scenario.sync_period_ms
            make_scaler = partial(Hindsight, needs.pods, lead_ms, tick_ms)
            yield Candidate(name="hindsight", policy=make_scaler, is_attainable=False)


def _changed_candidate(change_text: str, autoscaler: FleetAutoscaler) -> Candidate:
    """The present spec with the changes of a text such as `target=60`. Raises UsageError."""
    present_spec, settings = autoscaler.scenario.autoscalers[0].spec, autoscaler.scenario.settings
    wire, changed_settings = what_if.apply(what_if.parse(change_text), autoscaler.wire, settings)
    if changed_settings != settings:
        raise UsageError(f"{change_text}: candidates change fields of a spec, not flags of the controller")
    try:
        spec = core_spec.parse(present_spec.namespace, present_spec.name, wire, settings.emulation)
    except ValueError as error:
        raise UsageError(f"{change_text}: the autoscaler cannot be evaluated: {error}") from None
    return Candidate(name=change_text, policy=spec)
