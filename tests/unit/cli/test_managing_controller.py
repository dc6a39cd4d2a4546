"""Who looks after an autoscaler, in words and as data."""

from typing import Any

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.cli.explain.managing_controller import ManagingController
from podscaler.controller.informers.other_controllers import StatusWrite
from podscaler.controller.leaderelection.observed_holder import Holding

NOW = 1_000 * NANOSECONDS
RENEWED_AT = NOW - 2 * NANOSECONDS
WHOLE = Holding("podscaler-controller", "pod-a", RENEWED_AT, is_live=True, shard=None, shards=0)
SHARD = Holding("podscaler-controller-shard-3", "pod-a", RENEWED_AT, is_live=False, shard=3, shards=8)
RELEASED = Holding("podscaler-controller", "", None, is_live=False, shard=None, shards=0)
PLACE = "kube-system/podscaler-controller"


def shown(managing: ManagingController) -> dict[str, str]:
    """The lines by their labels."""
    return {line.label: line.text for line in managing.section.lines} if managing.section is not None else {}


@pytest.mark.parametrize(
    ("managing", "expected"),
    [
        (ManagingController(NOW), {}),
        (
            ManagingController(NOW, "waits until hpa/web/1 is gone", StatusWrite("kube-controller-manager", NOW)),
            {"waits": "waits until hpa/web/1 is gone", "status": "written by kube-controller-manager, just now"},
        ),
        (
            ManagingController(NOW, lease=WHOLE, lease_namespace="kube-system"),
            {"lease": f"{PLACE}: held by pod-a, renewed 2 s ago"},
        ),
        (
            ManagingController(NOW, lease=SHARD, lease_namespace="kube-system"),
            {"lease": f"{PLACE}-shard-3 (shard 3 of 8): held by nobody: pod-a renewed it last 2 s ago"},
        ),
        (
            ManagingController(NOW, lease=RELEASED, lease_namespace="kube-system"),
            {"lease": f"{PLACE}: released, and held by nobody"},
        ),
    ],
    ids=["nothing is known", "another controller", "a lone leader", "a shard without a holder", "released"],
)
def test_lines(managing: ManagingController, expected: dict[str, str]) -> None:
    """What is known, a line each."""
    assert shown(managing) == expected


@pytest.mark.parametrize(
    ("managing", "expected"),
    [
        (ManagingController(NOW), {}),
        (
            ManagingController(NOW, "waits", StatusWrite("podscaler", NOW), SHARD, "kube-system"),
            {
                "waits": "waits",
                "status": {"manager": "podscaler", "at": NOW},
                "lease": {
                    "namespace": "kube-system",
                    "name": "podscaler-controller-shard-3",
                    "holder": "pod-a",
                    "isHeld": False,
                    "renewedAt": RENEWED_AT,
                    "shard": 3,
                    "shards": 8,
                },
            },
        ),
    ],
    ids=["nothing", "everything"],
)
def test_data(managing: ManagingController, expected: dict[str, Any]) -> None:
    """What is not known is left out."""
    assert managing.data == expected
