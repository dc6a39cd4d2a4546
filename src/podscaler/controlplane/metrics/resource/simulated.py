"""Computes the usage of simulated pods from annotations, for tests and experiments without load.

`metrics.resource.sampler` calls it for pods with `runtimeClassName: simulated`. Annotations (docs/pods.md) are on the
pod or, so that they can change without a rollout, on its controller (annotations of a Deployment are copied to its
ReplicaSets):

    podscaler.dev/simulated-cpu: 250m                 every pod uses 250m
    podscaler.dev/simulated-total-cpu: 700m           the running pods of one controller share 700m equally
    podscaler.dev/simulated-memory, podscaler.dev/simulated-total-memory
    podscaler.dev/simulated-cpu.sidecar: 10m          the same for the container `sidecar`

Without a container's name the amount is the first container's. A pod's own annotation has precedence over its
controller's, an amount over a share; the default is zero. Only ready pods share a total, as a Service sends load to
ready pods only. A value that is not a quantity counts as zero; the sampler logs it once. A new resource: a field of
`SimulatedUsage` and of `rates.Rate`, set in `container_usage` and the sampler, and a name in `_states_usage`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podscaler.api.machinery.quantity import Quantity

PREFIX = "podscaler.dev/simulated-"
RUNTIME_CLASS = "simulated"
_NANOCORES = 1_000_000_000
"""The nanocores in one core."""


@dataclass(frozen=True, slots=True)
class SimulatedUsage:
    """One container's usage: CPU in nanocores (10^9 = one core), memory in bytes."""

    cpu_nanocores: int
    memory_bytes: int


def is_simulated(pod: Mapping[str, Any]) -> bool:
    """Whether a core/v1 Pod is simulated: it has no process."""
    return bool(pod["spec"].get("runtimeClassName") == RUNTIME_CLASS)


def container_usage(
    pod: Mapping[str, Any], *, controller_annotations: Mapping[str, str], sharers: int
) -> dict[str, SimulatedUsage]:
    """The usage by container name.

    Args:
        pod: a core/v1 Pod.
        controller_annotations: those of the pod's controller, empty without one.
        sharers: how many pods share a total, including this one; 0 if this one gets no share, as it is not ready.
    """
    annotations = {**controller_annotations, **pod["metadata"].get("annotations", {})}
    names = [container["name"] for container in pod["spec"].get("containers") or []]
    return {
        name: SimulatedUsage(
            _stated_amount(annotations, "cpu", name, is_first=index == 0, sharers=sharers, units_in_one=_NANOCORES),
            _stated_amount(annotations, "memory", name, is_first=index == 0, sharers=sharers, units_in_one=1),
        )
        for index, name in enumerate(names)
    }


def invalid_annotations(annotations: Mapping[str, str]) -> list[str]:
    """The names of the annotations of this module whose values are not quantities."""
    return [
        key for key, annotation in annotations.items() if _states_usage(key) and _parse_quantity(annotation) is None
    ]


def _states_usage(key: str) -> bool:
    """Whether an annotation is one of those in the module's docstring."""
    resource = key.removeprefix(PREFIX).removeprefix("total-").partition(".")[0]
    return key.startswith(PREFIX) and resource in {"cpu", "memory"}


def _stated_amount(
    annotations: Mapping[str, str], resource: str, container: str, *, is_first: bool, sharers: int, units_in_one: int
) -> int:
    """What the annotations state for a container, in units of which one core or byte has `units_in_one`."""
    suffixes = [f".{container}", ""] if is_first else [f".{container}"]
    for suffix in suffixes:
        stated_usage = _parse_quantity(annotations.get(f"{PREFIX}{resource}{suffix}"))
        if stated_usage is not None:
            return _scaled(stated_usage, units_in_one)
        stated_total = _parse_quantity(annotations.get(f"{PREFIX}total-{resource}{suffix}"))
        if stated_total is not None:
            return _scaled(stated_total, units_in_one) // sharers if sharers else 0
    return 0


def _parse_quantity(quantity_text: str | None) -> Quantity | None:
    """The quantity; None if there is no text, or it is not a quantity."""
    if quantity_text is None:
        return None
    try:
        return Quantity.parse(quantity_text)
    except ValueError:
        return None


def _scaled(quantity: Quantity, units_in_one: int) -> int:
    return max(round(quantity.milli_value() * units_in_one / 1000), 0)  # from thousandths; a negative amount is none
