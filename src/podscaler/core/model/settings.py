"""Defines the settings of decisions: flags, feature gates, and the emulated version of Kubernetes.

The controller's flags and the header of a recording both become a `Settings`, by `from_flags`. Example:
`{"horizontal-pod-autoscaler-tolerance": 0.2, "feature-gates": "HPAScaleToZero=false"}`. A new flag: a field of
Settings and a branch of `from_flags`; a new gate: a field of Gates and an entry of GATE_NAMES.

Source: docs/spec/decision.md 1.2 (Feature gates), docs/spec/controller.md 7 (Flags).
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from podscaler.api.machinery import duration
from podscaler.core.model import emulation
from podscaler.core.model.emulation import Emulation

SECOND_NS = 1_000_000_000


class Gates(msgspec.Struct, frozen=True):
    """The feature gates that decisions depend on; GATE_NAMES has their names in Kubernetes."""

    scale_to_zero: bool = True
    generation: bool = True
    optimized_selector_store: bool = True
    pod_level_resources: bool = True


GATE_NAMES = {
    "HPAScaleToZero": "scale_to_zero",
    "HPAGeneration": "generation",
    "HPAOptimizedSelectorStore": "optimized_selector_store",
    "PodLevelResources": "pod_level_resources",
}

TRUE_WORDS = frozenset({"1", "t", "T", "true", "TRUE", "True"})
FALSE_WORDS = frozenset({"0", "f", "F", "false", "FALSE", "False"})

CURRENT = "current"
ALGORITHMS = (CURRENT, "v1.1")
"""Names of the algorithms: of Kubernetes today, and of Kubernetes v1.1."""


class Settings(msgspec.Struct, frozen=True):
    """The flags that decisions depend on, with kube-controller-manager's defaults.

    Attributes:
        tolerance: the deviation of a ratio from 1.0 that calls for no change.
        downscale_stabilization_ns: the window of recommendations for scaling down.
        cpu_initialization_period_ns: how long after its start CPU samples of a pod count only from its ready time.
        initial_readiness_delay_ns: a pod that became unready within this time after its start was never ready.
        emulation: what the emulated version of Kubernetes does differently.
        algorithm: one of ALGORITHMS.
        upscale_delay_ns, downscale_delay_ns: how long no further rescale in that direction follows a rescale; None:
            the delay of the algorithm.
    """

    tolerance: float = 0.1
    downscale_stabilization_ns: int = 300 * SECOND_NS
    cpu_initialization_period_ns: int = 300 * SECOND_NS
    initial_readiness_delay_ns: int = 30 * SECOND_NS
    gates: Gates = Gates()
    emulation: Emulation = emulation.V1_37
    algorithm: str = CURRENT
    upscale_delay_ns: int | None = None
    downscale_delay_ns: int | None = None

    @property
    def algorithm_shown(self) -> str:
        """The algorithm's name for traces; empty for the current one."""
        return "" if self.algorithm == CURRENT else self.algorithm


DEFAULT = Settings()

_PREFIX = "horizontal-pod-autoscaler-"
_SPAN_FIELDS = {
    f"{_PREFIX}downscale-stabilization": "downscale_stabilization_ns",
    f"{_PREFIX}cpu-initialization-period": "cpu_initialization_period_ns",
    f"{_PREFIX}initial-readiness-delay": "initial_readiness_delay_ns",
    f"{_PREFIX}upscale-delay": "upscale_delay_ns",
    f"{_PREFIX}downscale-delay": "downscale_delay_ns",
}


def from_flags(flags: Mapping[str, Any], version: str = "1.37") -> Settings:
    """The settings of flags by kube-controller-manager's names; flags that decisions do not depend on are ignored.

    Args:
        flags: values as numbers or as texts, spans as Go durations.
        version: the emulated Kubernetes version, `1.37` or `1.37.0`.

    Raises ValueError naming the flag.
    """
    fields: dict[str, Any] = {"emulation": parse_version(version)}
    for flag, flag_value in flags.items():
        try:
            if flag in _SPAN_FIELDS:
                fields[_SPAN_FIELDS[flag]] = duration.parse(str(flag_value))
            elif flag == f"{_PREFIX}tolerance":
                fields["tolerance"] = float(flag_value)
            elif flag == "feature-gates":
                fields["gates"] = _parse_gates(flag_value)
            elif flag == "algorithm":
                fields["algorithm"] = parse_algorithm(str(flag_value))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"flag {flag}: {error}") from None
    return Settings(**fields)


def parse_algorithm(name: str) -> str:
    """The name of an algorithm, one of ALGORITHMS. Raises ValueError for another text."""
    if name not in ALGORITHMS:
        raise ValueError(f"{name!r} is not one of {', '.join(ALGORITHMS)}")
    return name


def parse_version(version: str) -> Emulation:
    """The emulation of a version of Kubernetes, `1.37` or `1.37.0`. Raises ValueError."""
    major_minor = ".".join(version.removeprefix("v").split(".")[:2])
    emulation_of_version = emulation.VERSIONS.get(major_minor)
    if emulation_of_version is None:
        raise ValueError(f"Kubernetes {version} is not one of {', '.join(emulation.VERSIONS)}")
    return emulation_of_version


def gate_values(gates_text: str) -> list[tuple[str, bool]]:
    """The names and values of `A=true,B=false`, in order. Raises ValueError.

    Source: the words of Go's strconv.ParseBool; the messages of k8s.io/component-base/featuregate.
    """
    values: list[tuple[str, bool]] = []
    for assignment in filter(None, (part.strip() for part in gates_text.split(","))):
        name, separator, word = (part.strip() for part in assignment.partition("="))
        if not separator:
            raise ValueError(f"missing bool value for {name}")
        if word not in TRUE_WORDS | FALSE_WORDS:
            raise ValueError(f'invalid value of {name}={word}: "{word}" is neither true nor false')
        values.append((name, word in TRUE_WORDS))
    return values


def _parse_gates(flag_value: str | Mapping[str, Any]) -> Gates:
    """The gates of `A=true,B=false` or of {"A": true}; gates that no decision depends on are ignored."""
    gates_text = str(flag_value)
    if isinstance(flag_value, Mapping):
        gates_text = ",".join(f"{name}={is_on}" for name, is_on in flag_value.items())
    return Gates(**{GATE_NAMES[name]: is_on for name, is_on in gate_values(gates_text) if name in GATE_NAMES})
