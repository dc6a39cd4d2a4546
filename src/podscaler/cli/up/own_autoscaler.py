"""The autoscaler of `podscaler up`: a controller on the API server beside it, counted and shown as a lone one is.

`podscaler.cli.up.control_plane` runs it, again where it has failed, and serves what it shows.

Invariant: what is shown is of the latest run; counters begin anew with each, as with a restart of a process.
"""

from dataclasses import replace

from podscaler.base.clock import Clock
from podscaler.controller import assembly
from podscaler.controller.controller import Controller
from podscaler.controller.options import installation
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.recording import Recording
from podscaler.controller.telemetry import request_metrics
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.kube.client import connect
from podscaler.kube.transport.config import Config

NOT_BEGUN = "the autoscaler has not begun"


class OwnAutoscaler:
    """See the module.

    Args:
        settings: the controller's.
        clock: everybody's.
        recording: where syncs are reported; the caller ends it.
    """

    def __init__(self, settings: ControllerSettings, clock: Clock, recording: Recording) -> None:
        self._settings = replace(settings, field_manager=installation.UP)
        self._clock = clock
        self._recording = recording
        self._telemetry = Telemetry(clock)
        self._controller: Controller | None = None

    def render(self) -> bytes:
        """Its metrics in Prometheus' text format; call it in a thread."""
        return self._telemetry.render()

    def unready(self) -> list[str]:
        """Why it does not work yet, one reason a line; empty when it does."""
        return [NOT_BEGUN] if self._controller is None else self._controller.unready()

    async def run(self, config: Config) -> None:
        """Work on a connection of its own until cancelled. Raises UsageError for unusable certificates."""
        client = await connect.open_client(config, self._clock, user_agent=installation.user_agent(installation.UP))
        try:
            controller = assembly.new_controller(client, self._settings, self._clock, recording=self._recording)
            request_metrics.count(client, controller.telemetry.registry, self._clock)
            self._controller, self._telemetry = controller, controller.telemetry
            await controller.run()
        finally:
            self._controller = None
            await client.close()
