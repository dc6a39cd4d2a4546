"""Maintains the ConfigMap kube-system/extension-apiserver-authentication, by which other API servers trust this one.

From it they read the certificate authorities of clients and of the front proxy, and the names of the request headers
that name a user. `controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; the only key is the
ConfigMap's name. Data keys of others in the ConfigMap stay; those of this server are restored. A new
key: an entry of `_own_data`.

Source: kube-apiserver's controller of cluster authentication trust. Differs: the header of the user's uid is included,
as this server sends it.
"""

import json
from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.aggregator import proxy_headers
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.credentials import front_proxy
from podscaler.controlplane.registry.registry import Registry

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
CONFIG_MAPS = "configmaps"


class ExtensionAuthentication(Reconciler[str]):
    """The controller of the ConfigMap extension-apiserver-authentication.

    Args:
        registry: the ConfigMaps.
        client_authority: PEM of the certificate authority that signs client certificates.
        front_authority: PEM of the certificate authority that signs this server's certificate as a front proxy.
    """

    name = "cluster-authentication-trust"

    def __init__(self, registry: Registry, *, client_authority: str, front_authority: str) -> None:
        self._registry = registry
        self._own_data = {
            "client-ca-file": client_authority,
            "requestheader-allowed-names": json.dumps([front_proxy.USER_NAME]),
            "requestheader-client-ca-file": front_authority,
            "requestheader-extra-headers-prefix": json.dumps([proxy_headers.EXTRA_PREFIX]),
            "requestheader-group-headers": json.dumps([proxy_headers.GROUP_HEADER]),
            "requestheader-uid-headers": json.dumps([proxy_headers.UID_HEADER]),
            "requestheader-username-headers": json.dumps([proxy_headers.USER_HEADER]),
        }

    def watches(self) -> Sequence[Watched[str]]:
        """ConfigMaps: the key of this one, none for others."""
        return [Watched(CONFIG_MAPS, lambda event: _keys_of_config_map(event.object))]

    def prime(self) -> Iterable[str]:
        """The only key."""
        return [NAME]

    async def sync(self, key: str) -> float | None:
        """Create the ConfigMap, or restore its data; returns None, as it is not synced again without a change.

        Raises StatusError if the write fails; the control loop then retries.
        """
        config_map = self._registry.find(CONFIG_MAPS, NAMESPACE, key)
        if config_map is None:
            metadata = {"name": key, "namespace": NAMESPACE}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self._own_data}
            try:
                await self._registry.create(CONFIG_MAPS, body)
            except StatusError as error:
                if not write_errors.is_already_exists(error):  # the ADDED event of an existing one leads to a sync
                    raise
            return None
        data = {**(config_map.get("data") or {}), **self._own_data}
        if data != config_map.get("data"):
            await self._registry.update(CONFIG_MAPS, {**config_map, "data": data})
        return None


def _keys_of_config_map(config_map: Object) -> list[str]:
    """The only key for a change of this ConfigMap; none for others."""
    return [NAME] if selection.key_of(config_map) == (NAMESPACE, NAME) else []
