"""Admission of pods for service accounts: sets the account's name and adds a volume with a token.

The wiring of `up` calls `admit_pods`, unless there is no node (`--api-only`); from then on `Objects` calls the
admission function before it stores a pod.

Source: upstream's ServiceAccount admission. Differs: a pod may be created before the account `default` of its
namespace, which is created shortly after the namespace; upstream returns an error until then.
"""

from collections.abc import Iterator
from random import Random

from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.auth.account_tokens import POD_TOKEN_LIFE_S
from podscaler.controlplane.registry import generated_names
from podscaler.controlplane.registry.objects import Objects

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_DEFAULT = "default"
_ROOT_CA = "kube-root-ca.crt"
_PREFIX = "kube-api-access-"
_READABLE_BY_ALL = 0o644


def admit_pods(objects: Objects, random: Random) -> None:
    """Register the admission of new pods with `objects`."""

    def admit(pod: Object, stored: Object | None) -> None:
        if stored is None:
            complete(pod, objects, random)

    objects.admit("pods", admit)


def complete(pod: Object, objects: Objects, random: Random) -> None:
    """Set the account's name and add the token volume in a new pod, in place.

    Raises:
        StatusError: 403 for a missing account.
    """
    spec, namespace = pod.setdefault("spec", {}), pod["metadata"].get("namespace", "")
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or _DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    entry = objects.find("serviceaccounts", namespace, name)
    if entry is None and name != _DEFAULT:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise api_errors.forbidden(objects.resource("pods"), api_errors.name_at_admission(pod), why)
    account: Object = entry.decode() if entry is not None else {}
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    if _is_mounted(spec, account):
        _mount(spec, random)


def _is_mounted(spec: Object, account: Object) -> bool:
    """Whether the token is mounted: by the field of the pod, else of its account, else yes."""
    for setting in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if setting is not None:
            return bool(setting)
    return True


def _mount(spec: Object, random: Random) -> None:
    lacking = [container for container in _containers(spec) if not _has_own(container)]
    if not lacking:
        return
    name = _volume_name(spec, random)
    for container in lacking:
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    if all(volume.get("name") != name for volume in spec.get("volumes") or ()):
        spec["volumes"] = [*(spec.get("volumes") or ()), _volume(name)]


def _containers(spec: Object) -> Iterator[Object]:
    for group in ("initContainers", "containers"):
        yield from spec.get(group) or ()


def _has_own(container: Object) -> bool:
    return any(mount.get("mountPath") == MOUNT_PATH for mount in container.get("volumeMounts") or ())


def _volume_name(spec: Object, random: Random) -> str:
    """The name of an existing token volume (of a pod that was copied from another), or a new name."""
    for volume in spec.get("volumes") or ():
        if volume.get("name", "").startswith(_PREFIX) and volume.get("projected"):
            return str(volume["name"])
    return generated_names.generated_name(_PREFIX, random)


def _volume(name: str) -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": POD_TOKEN_LIFE_S, "path": "token"}},
        {"configMap": {"name": _ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": _READABLE_BY_ALL}}
