"""Sets the service account of new pods and adds the volume with its token (the admission plugin ServiceAccount).

`podscaler up` calls `register`, unless there is no node (`--api-only`); from then on `Objects` calls the admission
function before it stores a pod. A pod without serviceAccountName gets `default`, a volume `kube-api-access-x7k2p`, and
a mount of it in every container. `_token_volume` has the files of that volume.

Source: kube-apiserver's admission plugin ServiceAccount. Differs: a pod may be created before the account `default` of
its namespace, which is created shortly after the namespace; kube-apiserver returns an error until then.
"""

from collections.abc import Iterator
from random import Random

from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.controlplane.auth.account_tokens import POD_TOKEN_LIFETIME_S
from podscaler.controlplane.registry import generated_names
from podscaler.controlplane.registry.objects import Objects

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where clients in a container find their token."""
_DEFAULT_ACCOUNT = "default"
_ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"
"""The ServiceAccount and the ConfigMap that `controllers.cluster.namespace_defaults` creates in each namespace."""
_VOLUME_NAME_PREFIX = "kube-api-access-"
_FILE_MODE = 0o644


def register(objects: Objects, random: Random) -> None:
    """Register the admission of new pods with `objects`; `random` makes the names of their token volumes."""

    def admit(pod: Object, stored: Object | None) -> None:
        if stored is None:
            _add_account(pod, objects, random)

    objects.add_admission("pods", admit)


def _add_account(pod: Object, objects: Objects, random: Random) -> None:
    """Set the account's name and add the token volume in a new pod, in place.

    Raises StatusError 403 if the account does not exist.
    """
    spec, namespace = pod.setdefault("spec", {}), pod["metadata"].get("namespace", "")
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or _DEFAULT_ACCOUNT
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    entry = objects.find("serviceaccounts", namespace, name)
    if entry is None and name != _DEFAULT_ACCOUNT:
        reason = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise api_errors.forbidden(objects.resource("pods"), api_errors.name_at_admission(pod), reason)
    account: Object = entry.decode() if entry is not None else {}
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    if _wants_token(spec, account):
        _mount_token(spec, random)


def _wants_token(spec: Object, account: Object) -> bool:
    """Whether the token is mounted: by the field of the pod, else of its account, else yes."""
    for setting in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if setting is not None:
            return bool(setting)
    return True


def _mount_token(spec: Object, random: Random) -> None:
    """Add the token volume, and its mount to each container that mounts nothing at MOUNT_PATH itself."""
    without_mount = [container for container in _containers(spec) if not _has_own_token_mount(container)]
    if not without_mount:
        return
    name = _volume_name(spec, random)
    for container in without_mount:
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    if all(volume.get("name") != name for volume in spec.get("volumes") or ()):
        spec["volumes"] = [*(spec.get("volumes") or ()), _token_volume(name)]


def _containers(spec: Object) -> Iterator[Object]:
    """The init containers and the containers of a pod."""
    for group in ("initContainers", "containers"):
        yield from spec.get(group) or ()


def _has_own_token_mount(container: Object) -> bool:
    """Whether a container mounts something of its own at MOUNT_PATH."""
    return any(mount.get("mountPath") == MOUNT_PATH for mount in container.get("volumeMounts") or ())


def _volume_name(spec: Object, random: Random) -> str:
    """The name of an existing token volume (of a pod that was copied from another), or a new name."""
    for volume in spec.get("volumes") or ():
        if volume.get("name", "").startswith(_VOLUME_NAME_PREFIX) and volume.get("projected"):
            return str(volume["name"])
    return generated_names.generated_name(_VOLUME_NAME_PREFIX, random)


def _token_volume(name: str) -> Object:
    """The projected volume with the files `token`, `ca.crt` and `namespace`."""
    namespace_file = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": POD_TOKEN_LIFETIME_S, "path": "token"}},
        {"configMap": {"name": _ROOT_CA_CONFIG_MAP, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace_file]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": _FILE_MODE}}
