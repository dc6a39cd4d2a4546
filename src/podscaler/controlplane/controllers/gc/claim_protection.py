"""The PVC protection controller: keeps deleted PersistentVolumeClaims as long as a pod uses them.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; keys are namespace and name of claims. New
claims have a finalizer; it is removed from a deleted claim once no unfinished pod refers to it.

Source: kube-controller-manager's persistentvolumeclaim-protection-controller.
Differs: pods are listed once, from the registry; upstream lists them from its cache and again from the API server.
"""

from collections.abc import Iterable, Iterator, Sequence

from podscaler.api.kinds.volumes.persistentvolumeclaim import PROTECTION
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

CLAIMS = "persistentvolumeclaims"
PODS = "pods"


class ClaimProtection(Reconciler[Key]):
    """Reconciles PersistentVolumeClaims that are being deleted. Keys are namespace and name."""

    name = "persistentvolumeclaim-protection-controller"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def watches(self) -> Sequence[Watched[Key]]:
        """Claims that are being deleted, and pods that end."""
        return [Watched(CLAIMS, _keys_of_claim), Watched(PODS, _keys_of_pod)]

    def prime(self) -> Iterable[Key]:
        """All claims that are being deleted."""
        return [selection.key_of(claim) for claim in self._registry.list(CLAIMS) if _is_held(claim)]

    async def sync(self, key: Key) -> float | None:
        """Remove the finalizer from a deleted claim that no pod uses."""
        claim = self._registry.find(CLAIMS, *key)
        if claim is not None and _is_held(claim) and not self._is_used(key):
            await write_errors.remove_finalizer(self._registry, CLAIMS, *key, PROTECTION)
        return None

    def _is_used(self, key: Key) -> bool:
        namespace, name = key
        listed = self._registry.list(PODS, namespace)
        return any(not pods.is_finished(pod) and name in _claims(pod) for pod in listed)


def _keys_of_claim(event: ObjectEvent) -> Iterable[Key]:
    return [selection.key_of(event.object)] if _is_held(event.object) else []


def _keys_of_pod(event: ObjectEvent) -> Iterable[Key]:
    """The claims of a pod that is finished or deleted."""
    if event.type != "DELETED" and not pods.is_finished(event.object):
        return []
    namespace, _ = selection.key_of(event.object)
    return [(namespace, name) for name in _claims(event.object)]


def _is_held(claim: Object) -> bool:
    return pods.is_terminating(claim) and PROTECTION in (claim["metadata"].get("finalizers") or [])


def _claims(pod: Object) -> Iterator[str]:
    """The names of the claims that a pod mounts, including those created for its ephemeral volumes."""
    for volume in pod["spec"].get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"].get("claimName", "")
        elif volume.get("ephemeral"):
            yield f"{pod['metadata']['name']}-{volume.get('name', '')}"
