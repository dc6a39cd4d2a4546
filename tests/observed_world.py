"""A controller on a fake cluster with a DecisionHistory and a LiveCluster, in virtual time, for tests of views."""

from typing import Any

from podscaler.kube.client.client import Client
from podscaler.observe import decision_history
from podscaler.observe.decision_history import DecisionHistory
from podscaler.observe.live_cluster import LiveCluster
from podscaler.testing.autoscaling import AutoscalerWorld
from podscaler.testing.clock import VirtualClock


class ObservedWorld(AutoscalerWorld):
    """The world; `history` and `live` observe its controller."""

    def __init__(self, *, limits: dict[str, Any] | None = None, **settings: Any) -> None:
        self.history = DecisionHistory(b"", VirtualClock())
        super().__init__(self.history, **settings)
        header = decision_history.header_of(self.settings)
        self.history = DecisionHistory(header, self.clock, **(limits or {}))
        self.recording = self.history
        self.controller = self.make_controller()
        client = Client(self.cluster, self.clock)
        self.live = LiveCluster(self.history, client, self.clock, name="test", own_manager=self.settings.field_manager)
        self.live.attach(self.controller)

    @property
    def now_ms(self) -> int:
        """The virtual clock in ms."""
        return self.clock.now_ns() // 1_000_000
