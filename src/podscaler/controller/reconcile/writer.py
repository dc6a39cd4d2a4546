"""What a sync changes in the cluster: the scale of the target, and the autoscaler's status.

The reconciler writes through a Writer, and through nothing else; another one may keep what it is given.
"""

from typing import Protocol

from podscaler.api.typed.autoscaling import HorizontalPodAutoscalerStatus
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.reconcile import status
from podscaler.controller.scales.target import ScaleTarget, Targets, Written
from podscaler.kube.client.client import Client


class Writer(Protocol):
    """Where the changes of syncs go."""

    async def write_scale(self, target: ScaleTarget, replicas: int) -> Written:
        """Make `replicas` what is wanted of the target; refusals are in what is returned."""
        ...

    async def write_status(self, autoscaler: Autoscaler, latest: HorizontalPodAutoscalerStatus) -> str:
        """Put the status; the resourceVersion that the object then has. Raises StatusError."""
        ...


class ClusterWriter:
    """Into the cluster.

    Args:
        client: for statuses.
        targets: for scales.
    """

    def __init__(self, client: Client, targets: Targets) -> None:
        self._client = client
        self._targets = targets

    async def write_scale(self, target: ScaleTarget, replicas: int) -> Written:
        """As Writer."""
        return await self._targets.write(target, replicas)

    async def write_status(self, autoscaler: Autoscaler, latest: HorizontalPodAutoscalerStatus) -> str:
        """As Writer. Raises StatusError."""
        return await status.write(self._client, autoscaler, latest)
