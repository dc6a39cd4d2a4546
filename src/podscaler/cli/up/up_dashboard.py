"""The dashboard of `podscaler up`: shows the decisions of its own autoscaler.

`podscaler.cli.up.control_plane` makes an UpDashboard before the autoscaler starts, and passes `history` to it as its
recording. `podscaler.cli.up.up` calls `start` after the control plane is up: the dashboard's server is imported only
then, so that `up` starts as fast as without it.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path

from podscaler.base.clock import Clock
from podscaler.base.version import __version__
from podscaler.controller.controller import Controller
from podscaler.controller.options import installation
from podscaler.controller.options.settings import ControllerSettings
from podscaler.controller.recording.recording import Recording
from podscaler.kube.client import connect
from podscaler.kube.config import locate
from podscaler.observe import decision_history
from podscaler.observe.decision_history import DecisionHistory

CLUSTER_NAME = "podscaler up"
"""The name of the cluster on the pages."""
SERVER_MODULE = "podscaler.dashboard.server"
"""The module whose import takes long."""


class UpDashboard:
    """The dashboard of one control plane.

    Args:
        settings: of the autoscaler.
        recorder: the recording of `--record`, which gets every sync as well.
        port: of the server; 0: any free one.

    Attributes:
        history: the recording that the controller must write to.
    """

    def __init__(self, settings: ControllerSettings, clock: Clock, recorder: Recording, port: int) -> None:
        self.history = DecisionHistory(decision_history.header_of(settings), clock, inner=recorder)
        self._clock = clock
        self._port = port
        self._controller: Controller | None = None
        self._attach_to_cluster: Callable[[Controller], None] | None = None  # None until `start` has made the cluster
        self._exit_stack = AsyncExitStack()

    def attach(self, controller: Controller) -> None:
        """Show this controller from now on, in place of the one before; call it before the controller runs."""
        self._controller = controller
        if self._attach_to_cluster is not None:
            self._attach_to_cluster(controller)

    async def start(self, kubeconfig: Path, on_login: Callable[[str], None]) -> tuple[str, str]:
        """Serve; returns the URL, and a link that logs in once. Raises UsageError if it cannot listen.

        Args:
            kubeconfig: of the administrator, with whose permissions the dashboard reads the cluster.
            on_login: called with the next link after each login.
        """
        await asyncio.to_thread(import_module, SERVER_MODULE)
        from podscaler.dashboard.server import DashboardOptions, DashboardServer
        from podscaler.observe.live_cluster import LiveCluster

        config = await asyncio.to_thread(locate.find_config, str(kubeconfig))
        client = await connect.open_reader(config, self._clock, user_agent=f"podscaler/{__version__} dashboard")
        self._exit_stack.push_async_callback(client.close)
        live_cluster = LiveCluster(self.history, client, self._clock, name=CLUSTER_NAME, own_manager=installation.UP)
        if self._controller is not None:
            live_cluster.attach(self._controller)
        self._attach_to_cluster = live_cluster.attach
        server = DashboardServer(live_cluster, self._clock, DashboardOptions(port=self._port, on_login=on_login))
        await server.start()
        self._exit_stack.push_async_callback(server.stop)
        return server.url, server.login_link()

    async def stop(self) -> None:
        """Stop serving."""
        await self._exit_stack.aclose()
