"""PersistentVolumeClaims that are deleted stay as long as a pod uses them.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; keys are namespace and name of claims. New
claims have a finalizer; it is taken off a deleted claim once no pod that may still run names it.

Source: kube-controller-manager's persistentvolumeclaim-protection-controller. Differs: pods are asked for once.
"""

from collections.abc import Iterable, Iterator, Sequence

from podscaler.api.kinds.volumes.persistentvolumeclaim import PROTECTION
from podscaler.api.resource.resources import Object
from podscaler.base.errors import StatusError
from podscaler.controlplane.controllers.framework import pods, selection
from podscaler.controlplane.controllers.framework.control_loop import Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

CLAIMS = "persistentvolumeclaims"
PODS = "pods"


class ClaimProtection:
    """See the module."""

    name = "persistentvolumeclaim-protection-controller"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def watches(self) -> Sequence[Watched[Key]]:
        """Claims that go, and pods that let go of them."""
        return [Watched(CLAIMS, self._of_claim), Watched(PODS, self._of_pod)]

    def prime(self) -> Iterable[Key]:
        """All claims that go."""
        return [key for claim in self._registry.list(CLAIMS) for key in self._of_claim(ObjectEvent("ADDED", claim))]

    async def sync(self, key: Key) -> float | None:
        """Take the finalizer off a claim that is to go and that nobody uses."""
        claim = self._registry.find(CLAIMS, *key)
        if claim is None or not _is_going(claim) or self._is_used(key):
            return None
        try:
            await self._registry.mutate(CLAIMS, *key, _unprotect)
        except StatusError as error:
            if error.code != 404:
                raise
        return None

    def report(self, key: Key, error: Exception) -> None:
        """Nothing more than the log."""

    def _is_used(self, key: Key) -> bool:
        namespace, name = key
        listed = self._registry.list(PODS, namespace)
        return any(not pods.is_finished(pod) and name in _claims(pod) for pod in listed)

    def _of_claim(self, change: ObjectEvent) -> Iterable[Key]:
        return [selection.key_of(change.object)] if _is_going(change.object) else []

    def _of_pod(self, change: ObjectEvent) -> Iterable[Key]:
        """The claims of a pod that is gone or over."""
        if change.type != "DELETED" and not pods.is_finished(change.object):
            return []
        namespace, _ = selection.key_of(change.object)
        return [(namespace, name) for name in _claims(change.object)]


def _is_going(claim: Object) -> bool:
    return pods.is_terminating(claim) and PROTECTION in (claim["metadata"].get("finalizers") or [])


def _claims(pod: Object) -> Iterator[str]:
    """The names of the claims that a pod mounts, those made for it included."""
    for volume in pod["spec"].get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"].get("claimName", "")
        elif volume.get("ephemeral"):
            yield f"{pod['metadata']['name']}-{volume.get('name', '')}"


def _unprotect(claim: Object) -> None:
    finalizers = claim["metadata"].get("finalizers") or []
    claim["metadata"]["finalizers"] = [name for name in finalizers if name != PROTECTION]
