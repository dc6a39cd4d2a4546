"""Runs the autoscaler of `podscaler up`, a controller in the process of the API server.

`podscaler.cli.up.control_plane` runs it as a background task, and serves its metrics and its readiness.
"""

from collections.abc import Callable
from dataclasses import replace

from podscaler.base.clock import Clock
from podscaler.cli.options import heapster
from podscaler.controller import assembly
from podscaler.controller.controller import Controller
from podscaler.controller.options import installation
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.recording import Recording
from podscaler.controller.telemetry import request_metrics
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.kube.client import connect
from podscaler.kube.transport.config import Config


class OwnAutoscaler:
    """A controller that connects to the API server of the same process over HTTPS.

    Counters of its metrics begin anew with each `run`, as after a restart of a process.

    Args:
        settings: the controller's settings; the field manager is replaced by that of `up`.
        recording: records the syncs; the caller ends it.
        on_controller: called with each new controller before it runs.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        clock: Clock,
        recording: Recording,
        on_controller: Callable[[Controller], None] | None = None,
    ) -> None:
        self._on_controller = on_controller
        self._settings = replace(settings, field_manager=installation.UP)
        self._clock = clock
        self._recording = recording
        self._telemetry = Telemetry(clock)
        self._controller: Controller | None = None

    def render(self) -> bytes:
        """The controller's metrics in Prometheus' text format; blocks: call it in a thread."""
        return self._telemetry.render()

    def unready(self) -> list[str]:
        """Why the controller does not work yet, one reason an item; empty when it works."""
        return ["the autoscaler has not begun"] if self._controller is None else self._controller.unready()

    async def run(self, config: Config) -> None:
        """Manage autoscalers on a connection of its own until cancelled. Raises UsageError."""
        client = await connect.open_client(config, self._clock, user_agent=installation.user_agent(installation.UP))
        try:
            async with heapster.open_metrics(client, self._settings, self._clock) as metrics:
                controller = assembly.new_controller(
                    client, self._settings, self._clock, metrics=metrics, recording=self._recording
                )
                request_metrics.install(client, controller.telemetry.registry, self._clock)
                self._controller, self._telemetry = controller, controller.telemetry
                if self._on_controller is not None:
                    self._on_controller(controller)
                await controller.run()
        finally:
            self._controller = None
            await client.close()
