"""Publishes the settings of a running controller in the cluster, and reads them for `podscaler explain`.

A podscaler controller publishes them when it starts to lead, as the entry `settings` of the ConfigMap
`podscaler-history`, which it may write already. A controller that keeps histories in memory publishes nothing, and
removes what an earlier process of its field manager published. The settings of kube-controller-manager are read from
the arguments of its pod, where the cluster shows that pod. A further setting is published if `ControllerSettings.flags`
has it.

Source: docs/explain.md ("Whose settings"); the flags of kube-controller-manager.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.base.version import __version__
from podscaler.controller.history import history_maps
from podscaler.controller.history.history_maps import SETTINGS, ForeignConfigMap, HistoryMaps
from podscaler.controller.leaderelection.fence import LeadershipLost
from podscaler.controller.options.settings import ControllerSettings
from podscaler.core.model import settings as core_settings
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client
from podscaler.kube.transport.transport import TransportError

log = logging.getLogger(__name__)

BUILT_IN = "kube-controller-manager"
BUILT_IN_NAMESPACE = "kube-system"
ATTEMPTS = 5
RETRY_DELAY_S = 2.0
"""The wait after the first failure, doubled after each further one."""
POLL_PERIOD_S = 1.0
"""How often it is checked whether writing is allowed."""
_FLAG_PREFIX = "horizontal-pod-autoscaler-"
_GATES = "feature-gates"


class _Published(msgspec.Struct):
    """The settings as the controller publishes them: the value of the key SETTINGS."""

    version: str
    manager: str
    emulate: str
    flags: dict[str, str | int | float | bool]


class _Container(msgspec.Struct):
    """The command line of a container."""

    command: list[str] = []
    args: list[str] = []


class _PodSpec(msgspec.Struct):
    """The fields of a pod's spec that are read."""

    containers: list[_Container] = []


class _Pod(msgspec.Struct):
    """A pod, of which only the containers' command lines are read."""

    spec: _PodSpec


class _Pods(msgspec.Struct):
    """The response to a list of pods."""

    items: list[_Pod] = []


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """The settings of a controller.

    Attributes:
        decision: the settings of decisions.
        flags: the values of flags by name; flags that are not set may be missing.
        origin: where the settings were read, for messages.
        manager: the field manager of the controller.
    """

    decision: core_settings.Settings
    flags: Mapping[str, Any]
    origin: str
    manager: str

    def decision_with(self, flag_values: Mapping[str, Any]) -> core_settings.Settings:
        """The settings of decisions with other values of some flags; feature gates are merged one by one.

        Raises ValueError naming a flag with a value that it cannot have.
        """
        gates = ",".join(str(flags[_GATES]) for flags in (self.flags, flag_values) if flags.get(_GATES))
        version = flag_values.get("emulate", self.decision.emulation.version)
        return core_settings.from_flags({**self.flags, **flag_values, _GATES: gates}, version)


async def keep_published(
    client: Client, settings: ControllerSettings, clock: Clock, *, has_begun: asyncio.Event, is_held: Callable[[], bool]
) -> None:
    """Publish the settings each time that this process begins to decide, until cancelled; never in a dry run.

    Args:
        has_begun: set when this process begins; cleared here.
        is_held: whether nothing may be written yet.
    """
    while not settings.dry_run:
        await has_begun.wait()
        has_begun.clear()
        while is_held():
            await clock.sleep(POLL_PERIOD_S)
        await publish(client, settings, clock)


async def publish(client: Client, settings: ControllerSettings, clock: Clock) -> None:
    """Write the settings for `find_published`; tries ATTEMPTS times, and logs why it could not.

    A controller that keeps histories in memory removes them instead. Only `podscaler explain` depends on them, and
    states what it assumes where there are none.
    """
    maps = HistoryMaps(client, settings.settings_namespace)
    for attempt in range(ATTEMPTS):
        try:
            if settings.history_namespace is None:
                await _remove_settings(maps, settings)
            else:
                await _write_settings(maps, settings)
        except LeadershipLost:
            return  # the next leader publishes
        except StatusError as error:
            if error.code == 403 or isinstance(error, ForeignConfigMap) or attempt == ATTEMPTS - 1:
                _log_failure(settings, error)
                return
            await clock.sleep(RETRY_DELAY_S * 2**attempt)
        else:
            return


async def _write_settings(maps: HistoryMaps, settings: ControllerSettings) -> None:
    """Write the settings. Raises StatusError, LeadershipLost."""
    published = _Published(
        version=__version__, manager=settings.field_manager, emulate=settings.emulate, flags=settings.flags
    )
    await maps.change(history_maps.NAME, {SETTINGS: msgspec.json.encode(published).decode()})


async def _remove_settings(maps: HistoryMaps, settings: ControllerSettings) -> None:
    """Remove what a process of the same field manager published. Raises StatusError, LeadershipLost."""
    try:
        contents = await maps.read(history_maps.NAME)
        published = msgspec.json.decode(contents.entries.get(SETTINGS, "null"), type=_Published | None)
    except (ForeignConfigMap, ValueError):
        return  # `find_published` does not take these for settings either
    if published is not None and published.manager == settings.field_manager:
        await maps.update(history_maps.NAME, {SETTINGS: None}, contents.version)


def _log_failure(settings: ControllerSettings, error: StatusError) -> None:
    """Log what could not be done: publishing the settings, or, with histories in memory, removing older ones."""
    if settings.history_namespace is not None:
        log.info("the settings are not published, so that explanations assume them: %s", error)
        return
    log.info(
        "settings that an earlier process published may still be there, and explanations use them: %s (grant get and "
        'patch on the ConfigMap %s in the namespace %s, or remove its entry "%s")',
        error,
        history_maps.NAME,
        settings.settings_namespace,
        SETTINGS,
    )


async def find_published(client: Client, namespace: str = history_maps.NAMESPACE) -> EffectiveSettings | None:
    """The settings that a podscaler controller published; None: none, or not readable. Raises TransportError."""
    try:
        settings_json = (await HistoryMaps(client, namespace).read(history_maps.NAME)).entries.get(SETTINGS)
        if settings_json is None:
            return None
        published = msgspec.json.decode(settings_json, type=_Published)
        decision = core_settings.from_flags(published.flags, published.emulate)
    except TransportError:
        raise
    except (StatusError, ValueError) as error:
        log.info("the settings of the controller cannot be read: %s", error)
        return None
    return EffectiveSettings(
        decision,
        published.flags,
        f"podscaler {published.version} (ConfigMap {namespace}/{history_maps.NAME})",
        published.manager,
    )


async def find_built_in(client: Client) -> EffectiveSettings | None:
    """The settings of kube-controller-manager by its pod's arguments; None: not visible. Raises TransportError."""
    path = "/api/v1" + urls.path("namespaces", BUILT_IN_NAMESPACE, "pods")
    try:
        body = await client.get(
            path, subject="pods", query=[("labelSelector", f"component={BUILT_IN}"), ("limit", "1")]
        )
        pods = msgspec.json.decode(body, type=_Pods).items
        containers = [container for pod in pods for container in pod.spec.containers]
        arguments = [argument for container in containers for argument in (*container.command, *container.args)]
        if not arguments:
            return None
        flags = dict(_parse_flags(arguments))
        decision = core_settings.from_flags(flags)
    except TransportError:
        raise
    except (StatusError, ValueError) as error:
        log.info("the arguments of %s cannot be read: %s", BUILT_IN, error)
        return None
    return EffectiveSettings(decision, flags, f"the arguments of the pod of {BUILT_IN}", BUILT_IN)


def _parse_flags(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and value of each flag that concerns autoscalers, from `--name=value` and `--name value`."""
    for index, argument in enumerate(arguments):
        name, separator, value_text = argument.removeprefix("--").partition("=")
        if not argument.startswith("--") or not (name.startswith(_FLAG_PREFIX) or name == _GATES):
            continue
        if separator:
            yield name, value_text
        elif index + 1 < len(arguments):
            yield name, arguments[index + 1]
