"""Finds the settings and the history with which the controller of a cluster decides, or assumes them.

`podscaler.cli.explain.explain` and `podscaler.cli.diagnosis.doctor` make an AssumedController of their flags;
`podscaler.cli.explain.explain_cluster` and `podscaler.cli.diagnosis.examination` find the rest in the cluster. Another
place of histories: a HistorySource, which both commands choose; another controller that shows its settings: a branch in
`SettingsFinder.find`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.cli.explain.explain_request import SettingsWithOrigin
from podscaler.controller.history import history_maps
from podscaler.controller.informers import handover
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.informers.other_controllers import StatusWrite
from podscaler.controller.leaderelection import lease
from podscaler.controller.options import effective_settings, installation
from podscaler.controller.options.effective_settings import BUILT_IN, EffectiveSettings
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model.history import History
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import TransportError

FLAGS_GIVEN = "the flags of this command"
"""The origin of settings that the user gave."""


class HistorySource(Protocol):
    """The store in which the controller keeps histories."""

    async def find(self, client: Client, autoscaler: Autoscaler) -> History | None:
        """The history of an autoscaler; None if it cannot be known. Raises StatusError."""
        ...


class NoHistory:
    """The history of a controller that keeps it in memory only."""

    async def find(self, client: Client, autoscaler: Autoscaler) -> History | None:
        """None: it cannot be read."""
        del client, autoscaler
        return None


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """The history of a controller that stores it in ConfigMaps.

    Attributes:
        namespace: the namespace of the ConfigMaps.
        clock: for the age of recommendations.
    """

    namespace: str
    clock: Clock

    async def find(self, client: Client, autoscaler: Autoscaler) -> History | None:
        """The stored history, or the one that a migration left on the autoscaler; None if there is neither.

        Also None if the ConfigMap may not be read (403), is not podscaler's or cannot be decoded (code 0). Raises
        StatusError for any other failure, TransportError among them.
        """
        key, now_ns, uid = autoscaler.key, self.clock.now_ns(), autoscaler.metadata.uid
        try:
            stored_history = await history_maps.load_history(
                client, key, now_ns=now_ns, uid=uid, namespace=self.namespace
            )
        except StatusError as error:
            if error.code not in (0, 403) or isinstance(error, TransportError):
                raise
            return None
        if stored_history is not None:
            return stored_history
        migrated = handover.find_history(autoscaler.metadata, now_ns)
        return migrated.history if migrated is not None else None


@dataclass(frozen=True, slots=True)
class AssumedController:
    """What is assumed of the controller: its settings, its history store, and its Leases.

    Attributes:
        settings: used where the cluster does not show the controller's own.
        lease_namespace: the namespace of the Leases.
        election: the name of the election, which is that of the leader's Lease.
        given_flags: the flags of decisions on the command line (values as in recordings); they replace those that the
            controller published.
    """

    settings: ControllerSettings
    history: HistorySource
    lease_namespace: str = lease.NAMESPACE
    election: str = lease.NAME
    given_flags: Mapping[str, Any] = field(default_factory=dict)


class SettingsFinder:
    """Finds the settings with which a controller decides about an autoscaler; each source is read once.

    The manager that wrote the status last selects the source: the settings that podscaler published, if podscaler
    wrote it or the writer is not known; the arguments of kube-controller-manager's pod, if that wrote it. Where the
    source has none, and for any other writer: the defaults, as an assumption unless the user gave flags. Each flag
    that the user gave replaces that one setting.
    """

    def __init__(self, client: Client, controller: AssumedController) -> None:
        self._client = client
        self._controller = controller
        self._settings_by_source: dict[str, asyncio.Future[EffectiveSettings | None]] = {}

    async def find(self, write: StatusWrite | None) -> SettingsWithOrigin:
        """The settings, and where they come from. Raises TransportError; other API errors count as no settings.

        Args:
            write: the last write of the autoscaler's status; None if that is not known.
        """
        assumed, given_flags = self._controller.settings.decision, self._controller.given_flags
        writer = write.manager if write else ""
        if not writer or writer.startswith(installation.MANAGER):
            namespace = self._controller.settings.settings_namespace
            published = await self._read_once(
                installation.MANAGER, lambda: effective_settings.find_published(self._client, namespace)
            )
        elif writer == BUILT_IN:
            published = await self._read_once(BUILT_IN, lambda: effective_settings.find_built_in(self._client))
        else:
            published = None
        # the settings of an installation with another field manager do not count
        if published is not None and writer in ("", published.manager):
            origin = f"{FLAGS_GIVEN}; the others from {published.origin}" if given_flags else published.origin
            return SettingsWithOrigin(published.decision_with(given_flags), origin)
        if given_flags:
            return SettingsWithOrigin(assumed, FLAGS_GIVEN)
        return SettingsWithOrigin(assumed, f"{writer or 'its controller'} has default settings", is_assumed=True)

    async def _read_once(
        self, source: str, read: Callable[[], Coroutine[Any, Any, EffectiveSettings | None]]
    ) -> EffectiveSettings | None:
        """The settings of a source, by its name; `read` is called the first time, also of concurrent ones."""
        if source not in self._settings_by_source:
            self._settings_by_source[source] = asyncio.ensure_future(read())
        return await self._settings_by_source[source]
