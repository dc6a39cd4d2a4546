"""Reads and changes the ConfigMaps of histories, and decides which one contains which autoscaler.

`podscaler.controller.history.config_map_store` keeps them up to date; `podscaler explain` and `migrate` read them by
`load_history`. There are 16, `podscaler-history-00` to `-15`, for any number of autoscalers, with one entry for
each autoscaler; and one, `podscaler-history`, with a heartbeat of each writer and the controller's settings. Rules:

1. Changes are merge patches of single entries with the resourceVersion that was read: a patch that arrives late, when
   another process may have written the same entries, is rejected, and its writer reads again.
2. A ConfigMap of such a name without the label LABEL belongs to another program: it is neither read nor changed. So
   each change is made for a version that was read and has the label. A form of entries that older controllers cannot
   read gets a new FORMAT.

Source: docs/decisions/history.md.
"""

import logging
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.controller.history import history_record
from podscaler.controller.history.history_record import Heartbeat
from podscaler.core.model.history import History
from podscaler.kube.client import urls
from podscaler.kube.client.client import Client, is_not_found
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
MAP_COUNT = 16
NAME = "podscaler-history"
SETTINGS = "settings"
"""The entry of NAME with the controller's settings; no writer has that name."""
LABEL = "podscaler.dev/history"
"""The label of these ConfigMaps; its value is the format of the entries."""
FORMAT = "v1"
READ_TIMEOUT_S = 5.0
UPDATE_ATTEMPTS = 4
"""The attempts of a change that meets conflicts."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a ConfigMap's metadata that are read."""

    labels: dict[str, str] | None = None
    resource_version: str = ""


class _ConfigMap(msgspec.Struct):
    """A ConfigMap as the API server returns it; `data` is its entries by data key."""

    metadata: _Meta
    data: dict[str, str] | None = None


class _WriteResponse(msgspec.Struct):
    """The response to a write, of which only the new resourceVersion is read."""

    metadata: _Meta = _Meta()


class ConfigMapContents(NamedTuple):
    """The data of a ConfigMap.

    Attributes:
        entries: texts by data key.
        version: the resourceVersion; None if the ConfigMap does not exist.
    """

    entries: Mapping[str, str]
    version: str | None


_CONFIG_MAP = msgspec.json.Decoder(_ConfigMap)
_RESPONSE_DECODER = msgspec.json.Decoder(_WriteResponse)
_ENCODER = msgspec.json.Encoder()


class ForeignConfigMap(StatusError):
    """A ConfigMap with the name of one of these lacks the label, so it belongs to another program."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the ConfigMap {name} is not podscaler's: it lacks the label {LABEL}={FORMAT}", code=0)


def map_of(key: Key) -> str:
    """The name of the ConfigMap that holds an autoscaler's history."""
    return f"{NAME}-{zlib.crc32('/'.join(key).encode()) % MAP_COUNT:02}"


class HistoryMaps:
    """Reads and changes the ConfigMaps of one API server.

    Args:
        namespace: the namespace of the ConfigMaps.
    """

    def __init__(self, client: Client, namespace: str = NAMESPACE) -> None:
        self._client = client
        self.namespace = namespace

    async def read(self, name: str) -> ConfigMapContents:
        """The data of a ConfigMap, empty if it does not exist. Raises StatusError, ForeignConfigMap among them."""
        try:
            body = await self._client.get(self._path(name), subject=f"configmaps {name}", timeout_s=READ_TIMEOUT_S)
        except StatusError as error:
            if is_not_found(error):
                return ConfigMapContents({}, None)
            raise
        try:
            config_map = _CONFIG_MAP.decode(body)
        except JSON_DECODE_ERRORS as error:
            raise StatusError(f"the ConfigMap {name} cannot be read: {error}", code=0) from error
        if (config_map.metadata.labels or {}).get(LABEL) != FORMAT:
            raise ForeignConfigMap(name)
        return ConfigMapContents(config_map.data or {}, config_map.metadata.resource_version)

    async def update(self, name: str, entries: Mapping[str, str | None], version: str | None) -> str:
        """Set entries of a ConfigMap if it still has the version, and remove those that are None; the new version.

        Raises StatusError; `is_outdated` is true if the ConfigMap has to be read again.
        """
        if version is None:
            return await self._create(
                name, {data_key: record_json for data_key, record_json in entries.items() if record_json is not None}
            )
        body = _ENCODER.encode({"metadata": {"resourceVersion": version}, "data": entries})
        return _new_version(await self._client.patch(self._path(name), body, subject=f"configmaps {name}"), name)

    async def change(self, name: str, entries: Mapping[str, str | None]) -> None:
        """Set entries of a ConfigMap in any version, and remove those that are None.

        Raises ForeignConfigMap, and StatusError, also where others have changed the ConfigMap at each of
        UPDATE_ATTEMPTS.
        """
        for attempts_left in reversed(range(UPDATE_ATTEMPTS)):
            version = (await self.read(name)).version
            try:
                await self.update(name, entries, version)
            except StatusError as error:
                if not (attempts_left and is_outdated(error)):
                    raise
            else:
                return

    async def heartbeats(self) -> dict[str, Heartbeat]:
        """The heartbeat of each writer; invalid ones are left out. Raises StatusError."""
        heartbeats: dict[str, Heartbeat] = {}
        for writer, heartbeat_json in (await self.read(NAME)).entries.items():
            if writer == SETTINGS:
                continue
            try:
                heartbeats[writer] = history_record.decode_heartbeat(heartbeat_json)
            except ValueError as error:
                log.warning("the heartbeat %s in the ConfigMap %s is invalid: %s", writer, NAME, error)
        return heartbeats

    async def _create(self, name: str, entries: Mapping[str, str]) -> str:
        """Create the ConfigMap with these entries, text by data key; its resourceVersion. Raises StatusError."""
        metadata = {
            "name": name,
            "namespace": self.namespace,
            "labels": {"app.kubernetes.io/managed-by": "podscaler", LABEL: FORMAT},
        }
        body = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": entries}
        response = await self._client.post(self._path(), _ENCODER.encode(body), subject=f"configmaps {name}")
        return _new_version(response, name)

    def _path(self, name: str = "") -> str:
        return "/api/v1" + urls.path("namespaces", self.namespace, "configmaps", name)


def is_outdated(error: StatusError) -> bool:
    """Whether an update failed because the ConfigMap was changed, created or deleted since it was read."""
    return error.code == 409 or is_not_found(error)


def _new_version(response: bytes, name: str) -> str:
    """The resourceVersion in the response to a write. Raises StatusError if there is none."""
    try:
        return _RESPONSE_DECODER.decode(response).metadata.resource_version
    except JSON_DECODE_ERRORS as error:
        raise StatusError(f"the answer to a write of the ConfigMap {name} cannot be read: {error}", code=0) from error


async def load_history(
    client: Client, key: Key, *, now_ns: int, uid: str | None = None, namespace: str = NAMESPACE
) -> History | None:
    """The history that the controller of a cluster has stored of an autoscaler, as of its last write.

    Args:
        key: the autoscaler's key.
        now_ns: this instant, in ns since the epoch.
        uid: the object's uid; None: any.
        namespace: the namespace of the ConfigMaps.

    Returns None if there is no valid record of that object. Raises StatusError.
    """
    maps = HistoryMaps(client, namespace)
    record_json = (await maps.read(map_of(key))).entries.get(history_record.data_key(key))
    if record_json is None:
        return None
    try:
        record = history_record.decode(record_json)
    except ValueError as error:
        log.warning("the history of %s/%s is invalid and ignored: %s", *key, error)
        return None
    if uid not in (None, record.uid) or history_record.is_from_future(record, now_ns):
        return None
    return history_record.current(record, (await maps.heartbeats()).get(record.writer), now_ns)
