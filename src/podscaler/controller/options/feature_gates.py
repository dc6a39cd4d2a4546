"""Defines the feature gates of the autoscaler with their states in Kubernetes v1.37, and parses `--feature-gates`.

`podscaler.cli.options.settings` calls `parse`. A gate that upstream has locked cannot be changed; an unknown name is an
error, so that a typing mistake never passes as "switched off".

Source: docs/spec/decision.md 1.2 (Feature gates); the messages of k8s.io/component-base/featuregate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from podscaler.base.errors import UsageError
from podscaler.core.model import settings as core_settings

ALL_BETA = "AllBeta"


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate: its default, its stage (`BETA`, `GA`), and whether it is locked to the default."""

    default: bool
    stage: str
    locked: bool = False


HPA_SCALE_TO_ZERO = "HPAScaleToZero"
HPA_CONFIGURABLE_TOLERANCE = "HPAConfigurableTolerance"
HPA_GENERATION = "HPAGeneration"
HPA_OPTIMIZED_SELECTOR_STORE = "HPAOptimizedSelectorStore"
STALE_CONTROLLER_CONSISTENCY = "StaleControllerConsistencyHPA"
POD_LEVEL_RESOURCES = "PodLevelResources"

KNOWN: Mapping[str, Gate] = {
    HPA_SCALE_TO_ZERO: Gate(default=True, stage="BETA"),
    HPA_CONFIGURABLE_TOLERANCE: Gate(default=True, stage="GA", locked=True),
    HPA_GENERATION: Gate(default=True, stage="BETA"),
    HPA_OPTIMIZED_SELECTOR_STORE: Gate(default=True, stage="BETA"),
    STALE_CONTROLLER_CONSISTENCY: Gate(default=True, stage="BETA"),
    POD_LEVEL_RESOURCES: Gate(default=True, stage="BETA"),
}
"""All gates. A new gate: add it here, and ask `FeatureGates.enabled` in the code that it switches."""


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The gates that a flag sets; the others have their defaults."""

    chosen: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, name: str) -> bool:
        """Whether the gate of that name (one of KNOWN) is on."""
        return self.chosen.get(name, KNOWN[name].default)

    def __str__(self) -> str:
        """The gates that are set, as the flag has them."""
        return ",".join(f"{name}={str(on).lower()}" for name, on in sorted(self.chosen.items()))


def parse(gates_text: str) -> FeatureGates:
    """The gates of `Name=true,Other=false`, the last entry of a name counting. Raises UsageError."""
    gates_by_name: dict[str, bool] = {}
    try:
        for name, is_on in core_settings.gate_values(gates_text):
            gates_by_name |= _gates_of_entry(name, is_on)
    except ValueError as error:
        raise UsageError(f"--feature-gates: {error}") from error
    return FeatureGates(gates_by_name)


def _gates_of_entry(name: str, is_on: bool) -> dict[str, bool]:
    """The gates that one entry sets: the named one, or with `AllBeta` all of that stage. Raises ValueError."""
    if name == ALL_BETA:
        return {gate_name: is_on for gate_name, gate in KNOWN.items() if gate.stage == "BETA"}
    gate = KNOWN.get(name)
    if gate is None:
        raise ValueError(f"unrecognized feature gate: {name} (known: {', '.join(sorted(KNOWN))})")
    if gate.locked and is_on != gate.default:
        locked_to = str(gate.default).lower()
        raise ValueError(f"cannot set feature gate {name} to {str(is_on).lower()}, feature is locked to {locked_to}")
    return {name: is_on}
