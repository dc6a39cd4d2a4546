"""Storage protection: keeps deleted PersistentVolumeClaims while a pod uses them, and volumes while they are bound.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`; keys are namespace and name of claims, or the
name of a volume with an empty namespace. New claims and volumes have a finalizer; it is removed from a deleted claim
once no unfinished pod refers to it, and from a deleted volume whose phase is not Bound.

Source: kube-controller-manager's persistentvolumeclaim-protection-controller and its counterpart for volumes.
Differs: pods are listed once, from the registry; upstream lists them from its cache and again from the API server.
"""

from collections.abc import Iterable, Iterator, Sequence

from podscaler.api.kinds.volumes import persistentvolume, persistentvolumeclaim
from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import pods, selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

CLAIMS = "persistentvolumeclaims"
PODS = "pods"
VOLUMES = "persistentvolumes"


class ClaimProtection(Reconciler[Key]):
    """Reconciles claims and volumes that are being deleted. Keys are namespace (empty for volumes) and name."""

    name = "persistentvolumeclaim-protection-controller"

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def watches(self) -> Sequence[Watched[Key]]:
        """Claims and volumes that are being deleted, and pods that end."""
        return [
            Watched(CLAIMS, _keys_of_claim),
            Watched(PODS, _keys_of_pod),
            Watched(VOLUMES, _keys_of_volume),
        ]

    def prime(self) -> Iterable[Key]:
        """All claims that are being deleted, and all volumes that are being deleted and not bound."""
        claims = [claim for claim in self._registry.list(CLAIMS) if _is_claim_releasable(claim)]
        volumes = [volume for volume in self._registry.list(VOLUMES) if _is_volume_releasable(volume)]
        return [selection.key_of(obj) for obj in (*claims, *volumes)]

    async def sync(self, key: Key) -> float | None:
        """Remove the finalizer of a deleted unused claim or unbound volume; returns None. Raises StatusError."""
        namespace, _ = key
        if not namespace:
            volume = self._registry.find(VOLUMES, *key)
            if volume is not None and _is_volume_releasable(volume):
                await write_errors.remove_finalizer(
                    self._registry, VOLUMES, *key, persistentvolume.PROTECTION_FINALIZER
                )
            return None
        claim = self._registry.find(CLAIMS, *key)
        if claim is not None and _is_claim_releasable(claim) and not self._is_used(key):
            await write_errors.remove_finalizer(
                self._registry, CLAIMS, *key, persistentvolumeclaim.PROTECTION_FINALIZER
            )
        return None

    def _is_used(self, claim_key: Key) -> bool:
        """Whether an unfinished pod mounts the claim."""
        namespace, claim_name = claim_key
        namespace_pods = self._registry.list(PODS, namespace)
        return any(not pods.is_finished(pod) and claim_name in _claim_names(pod) for pod in namespace_pods)


def _keys_of_claim(event: ObjectEvent) -> Iterable[Key]:
    """The key of a changed claim that is being deleted, otherwise none."""
    return [selection.key_of(event.object)] if _is_claim_releasable(event.object) else []


def _keys_of_volume(event: ObjectEvent) -> Iterable[Key]:
    """The key of a changed volume that is being deleted and not bound, otherwise none."""
    return [selection.key_of(event.object)] if _is_volume_releasable(event.object) else []


def _keys_of_pod(event: ObjectEvent) -> Iterable[Key]:
    """The claims of a pod that is finished or deleted."""
    if event.type != "DELETED" and not pods.is_finished(event.object):
        return []
    namespace, _ = selection.key_of(event.object)
    return [(namespace, claim_name) for claim_name in _claim_names(event.object)]


def _is_claim_releasable(claim: Object) -> bool:
    """Whether a claim is being deleted and has the finalizer; whether pods use it is not checked."""
    finalizers = claim["metadata"].get("finalizers") or []
    return pods.is_terminating(claim) and persistentvolumeclaim.PROTECTION_FINALIZER in finalizers


def _is_volume_releasable(volume: Object) -> bool:
    """Whether a volume is being deleted, has the finalizer, and is not bound."""
    is_bound = (volume.get("status") or {}).get("phase") == "Bound"
    finalizers = volume["metadata"].get("finalizers") or []
    return pods.is_terminating(volume) and persistentvolume.PROTECTION_FINALIZER in finalizers and not is_bound


def _claim_names(pod: Object) -> Iterator[str]:
    """The names of the claims that a pod mounts, including those created for its ephemeral volumes."""
    for volume in pod["spec"].get("volumes") or []:
        if volume.get("persistentVolumeClaim"):
            yield volume["persistentVolumeClaim"].get("claimName", "")
        elif volume.get("ephemeral"):
            yield f"{pod['metadata']['name']}-{volume.get('name', '')}"
