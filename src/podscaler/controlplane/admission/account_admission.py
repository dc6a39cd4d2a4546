"""What every new pod gets for its service account: the account's name, and a volume with a token of it.

Called by the wiring of `up`; from then on `Objects` asks `admit` before it stores a pod, whoever creates it. Without a
node (`--api-only`) nobody needs it.

Source: upstream's ServiceAccount admission. Differs: a pod may be created before the account `default` of its
namespace, which comes a moment after the namespace; upstream makes its creator wait.
"""

from collections.abc import Callable, Iterator
from functools import partial
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
    """Complete every pod that is created from now on."""
    find: _FindAccount = partial(_find_account, objects)
    refuse: _Refuse = partial(_refuse, objects)

    def admit(pod: Object, stored: Object | None) -> None:
        if stored is None:
            complete(pod, find, refuse, random)

    objects.admit("pods", admit)


_FindAccount = Callable[[str, str], Object | None]
"""A ServiceAccount by namespace and name."""
_Refuse = Callable[[Object, str], Exception]
"""The refusal of a pod for the reason given."""


def complete(pod: Object, find: _FindAccount, refuse: _Refuse, random: Random) -> None:
    """Put the account's name and the volume into a new pod, in place.

    Raises:
        StatusError: 403 for an account that is not there.
    """
    spec, namespace = pod.setdefault("spec", {}), pod["metadata"].get("namespace", "")
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or _DEFAULT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = find(namespace, name)
    if account is None and name != _DEFAULT:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise refuse(pod, why)
    account = account or {}
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    if _is_mounted(spec, account):
        _mount(spec, random)


def _find_account(objects: Objects, namespace: str, name: str) -> Object | None:
    entry = objects.find("serviceaccounts", namespace, name)
    return entry.decode() if entry is not None else None


def _refuse(objects: Objects, pod: Object, why: str) -> Exception:
    return api_errors.forbidden(objects.resource("pods"), api_errors.name_at_admission(pod), why)


def _is_mounted(spec: Object, account: Object) -> bool:
    """Whether the pod wants a token; it may say so itself, else its account does, else it does."""
    for wanted in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if wanted is not None:
            return bool(wanted)
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
    """That of a volume that is there for the purpose already (a pod made from another's copy), or a new one."""
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
