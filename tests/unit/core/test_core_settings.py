"""Settings from recorded flags, and what versions differ in.

Source: docs/spec/controller.md 7 (Flags), docs/spec/decision.md 1.2 (Feature gates), 13 (Differences of v1.38 alpha).
"""

import re
from typing import Any

import pytest

from podscaler.core.model import settings
from podscaler.core.model.emulation import V1_37, V1_38
from podscaler.core.model.settings import Gates, Settings
from podscaler.testing.decisions import SECOND


def test_defaults() -> None:
    """Without flags the settings are kube-controller-manager's."""
    assert settings.from_flags({}) == Settings(0.1, 300 * SECOND, 300 * SECOND, 30 * SECOND, Gates(), V1_37)


def test_flags() -> None:
    """Each flag that decisions look at is read; others are not looked at."""
    flags = {
        "horizontal-pod-autoscaler-tolerance": 0.037,
        "horizontal-pod-autoscaler-downscale-stabilization": "1m0s",
        "horizontal-pod-autoscaler-cpu-initialization-period": "1m30s",
        "horizontal-pod-autoscaler-initial-readiness-delay": "20s",
        "horizontal-pod-autoscaler-sync-period": "15s",
        "leader-elect": True,
        "feature-gates": "HPAScaleToZero=false, SomethingElse=true",
    }
    assert settings.from_flags(flags, "1.38.0-alpha.1") == Settings(
        0.037, 60 * SECOND, 90 * SECOND, 20 * SECOND, Gates(scale_to_zero=False), V1_38
    )


def test_gates_as_a_map() -> None:
    """Feature gates may be recorded as a map too."""
    read = settings.from_flags({"feature-gates": {"HPAGeneration": False, "PodLevelResources": "true"}})
    assert read.gates == Gates(generation=False)


@pytest.mark.parametrize(
    ("flags", "version", "message"),
    [
        ({}, "1.29.0", "Kubernetes 1.29.0 is not one of 1.37, 1.38"),
        (
            {"horizontal-pod-autoscaler-downscale-stabilization": "5"},
            "1.37.0",
            'flag horizontal-pod-autoscaler-downscale-stabilization: time: missing unit in duration "5"',
        ),
        (
            {"horizontal-pod-autoscaler-tolerance": "much"},
            "1.37.0",
            "flag horizontal-pod-autoscaler-tolerance: could not convert string to float: 'much'",
        ),
        (
            {"horizontal-pod-autoscaler-tolerance": 10**400},
            "1.37.0",
            "flag horizontal-pod-autoscaler-tolerance: int too large to convert to float",
        ),
        (
            {"feature-gates": "HPAScaleToZero=maybe"},
            "1.37",
            'flag feature-gates: invalid value of HPAScaleToZero=maybe: "maybe" is neither true nor false',
        ),
    ],
)
def test_errors(flags: dict[str, Any], version: str, message: str) -> None:
    """What cannot be read is named."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        settings.from_flags(flags, version)


@pytest.mark.parametrize(
    ("rules", "ceiling", "average", "milli"),
    [(V1_37, -(2**31), -(2**63), 1), (V1_38, 2**31 - 1, 5000, -1)],
    ids=["1.37", "1.38"],
)
def test_versions(rules: Any, ceiling: int, average: int, milli: int) -> None:
    """Overflow, averages over nobody and negative rounding are what versions differ in."""
    found = (rules.ceil_int32(1e10), rules.average_milli(5000, 0), rules.parse_milli("-1.5n"))
    assert found == (ceiling, average, milli)
