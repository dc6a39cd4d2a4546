"""Settings and the flags that stand for them."""

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.controller.options.feature_gates import FeatureGates
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model import settings as core_settings

CHANGED = ControllerSettings(
    concurrent_syncs=7,
    sync_period_ns=2 * NANOSECONDS,
    downscale_stabilization_ns=90 * NANOSECONDS,
    tolerance=0.05,
    cpu_initialization_period_ns=1,
    initial_readiness_delay_ns=1_500_000,
    history_namespace=None,
    algorithm="v1.1",
    upscale_delay_ns=60 * NANOSECONDS,
    emulate="1.38",
    status_period_ns=60 * NANOSECONDS,
    reacts=True,
    gates=FeatureGates({"HPAScaleToZero": False, "StaleControllerConsistencyHPA": False, "PodLevelResources": True}),
)


@pytest.mark.parametrize("settings", [ControllerSettings(), CHANGED], ids=["defaults", "changed"])
def test_recorded_flags_mean_the_same(settings: ControllerSettings) -> None:
    """What a recording's header says makes the settings with which was decided."""
    assert core_settings.from_flags(settings.flags, settings.decision.emulation.version) == settings.decision


def test_other_flags_are_recorded_where_they_are_used() -> None:
    """Those of older releases, with which a recording is decided again, and our own."""
    flags = {name: value for name, value in CHANGED.flags.items() if name not in ControllerSettings().flags}
    assert flags == {
        "algorithm": "v1.1",
        "horizontal-pod-autoscaler-upscale-delay": "1m0s",
        "status-period": "1m0s",
        "react-to-changes": True,
    }


def test_flags_have_their_names() -> None:
    """The names are kube-controller-manager's."""
    assert ControllerSettings().flags == {
        "concurrent-horizontal-pod-autoscaler-syncs": 5,
        "horizontal-pod-autoscaler-sync-period": "15s",
        "horizontal-pod-autoscaler-downscale-stabilization": "5m0s",
        "horizontal-pod-autoscaler-tolerance": 0.1,
        "horizontal-pod-autoscaler-cpu-initialization-period": "5m0s",
        "horizontal-pod-autoscaler-initial-readiness-delay": "30s",
        "feature-gates": "",
        "history": "cluster",
    }


@pytest.mark.parametrize(
    ("period_s", "reacts", "tick_s"),
    [(1, False, 0.1), (15, False, 1.5), (20, False, 2.0), (300, False, 2.0), (5, True, 0.5), (15, True, 1.0)],
)
def test_a_tick(period_s: int, reacts: bool, tick_s: float) -> None:
    """A tenth of the period, two seconds at most; one second at most for those who react to changes."""
    assert ControllerSettings(sync_period_ns=period_s * NANOSECONDS, reacts=reacts).tick_s == tick_s
