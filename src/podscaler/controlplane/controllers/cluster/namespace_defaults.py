"""Creates the system namespaces, and in every namespace the default ServiceAccount and the root CA's ConfigMap.

`cli.up` awaits `make_system_namespaces` before it serves; `controller_manager.Controllers` runs the controller in a
`control_loop.ControlLoop`, which restores what clients delete or change.

A new default object: a watch, and a creation in `NamespaceDefaults.sync`.

Source: documentation of namespaces, service accounts, and of the root CA publisher.
"""

from collections.abc import Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.framework import pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

NAMESPACES = "namespaces"
SERVICE_ACCOUNTS = "serviceaccounts"
CONFIG_MAPS = "configmaps"
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
DEFAULT_ACCOUNT = "default"
"""The name of the default ServiceAccount."""
ROOT_CA = "kube-root-ca.crt"
"""The name of the ConfigMap with the CA certificate."""
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


async def make_system_namespaces(registry: Registry) -> None:
    """Create the missing system namespaces. Raises StatusError."""
    for name in SYSTEM_NAMESPACES:
        if registry.find(NAMESPACES, "", name) is None:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await _create_unless_exists(registry, NAMESPACES, namespace)


class NamespaceDefaults(Reconciler[str]):
    """Reconciles the default objects of namespaces. Keys are names of namespaces.

    Args:
        registry: the objects.
        ca_certificate: the PEM text of the CA that clients verify the API server with.
    """

    name = "namespace-defaults-controller"

    def __init__(self, registry: Registry, *, ca_certificate: str) -> None:
        self._registry = registry
        self._ca_certificate = ca_certificate

    def watches(self) -> Sequence[Watched[str]]:
        """Namespaces, and the two objects of each."""
        return [
            Watched(NAMESPACES, lambda event: [event.object["metadata"]["name"]]),
            Watched(SERVICE_ACCOUNTS, lambda event: _keys_of(event, DEFAULT_ACCOUNT)),
            Watched(CONFIG_MAPS, lambda event: _keys_of(event, ROOT_CA)),
        ]

    def prime(self) -> Iterable[str]:
        """All namespaces."""
        return [namespace["metadata"]["name"] for namespace in self._registry.list(NAMESPACES)]

    async def sync(self, key: str) -> float | None:
        """Create or update the two objects, unless the namespace is being deleted; returns None. Raises StatusError."""
        namespace = self._registry.find(NAMESPACES, "", key)
        if namespace is None or pods.is_terminating(namespace):
            return None
        if self._registry.find(SERVICE_ACCOUNTS, key, DEFAULT_ACCOUNT) is None:
            metadata = {"name": DEFAULT_ACCOUNT, "namespace": key}
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
            await _create_unless_exists(self._registry, SERVICE_ACCOUNTS, account)
        await self._publish_ca(key)
        return None

    async def _publish_ca(self, namespace: str) -> None:
        """Create the ConfigMap with the CA certificate, or restore its data."""
        config_map = self._registry.find(CONFIG_MAPS, namespace, ROOT_CA)
        data = {"ca.crt": self._ca_certificate}
        if config_map is None:
            annotations = {"kubernetes.io/description": _DESCRIPTION}
            metadata = {"name": ROOT_CA, "namespace": namespace, "annotations": annotations}
            new_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await _create_unless_exists(self._registry, CONFIG_MAPS, new_map)
        elif config_map.get("data") != data:
            await self._registry.update(CONFIG_MAPS, {**config_map, "data": data})


def _keys_of(event: ObjectEvent, default_name: str) -> list[str]:
    """The namespace of a changed object if it has the name of the default object, otherwise none."""
    namespace, name = selection.key_of(event.object)
    return [namespace] if name == default_name else []


async def _create_unless_exists(registry: Registry, resource: str, obj: Object) -> None:
    """Create an object, unless it exists or its namespace is gone or being deleted. Raises StatusError."""
    try:
        await registry.create(resource, obj)
    except StatusError as error:
        is_namespace_gone = error.code == 404 or write_errors.is_namespace_terminating(error)
        if not is_namespace_gone and not write_errors.is_already_exists(error):
            raise
