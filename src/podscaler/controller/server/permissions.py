"""Lists the permissions that the controller needs, and finds those that the API server does not grant.

`podscaler controller` calls `warn` at its start and continues: a missing permission may be granted later, and one that
is not used is not needed. One log line lists all that are missing, and names the manifest that grants them. A request
that is forbidden later appears in conditions, events or the log. A new permission: add it to NEEDED, or to a function
`of_...` and to `needed`.

Source: docs/spec/controller.md 9 (RBAC); the watch of pods and stored histories need more than that.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from podscaler.base.errors import StatusError
from podscaler.controller.history import history_maps
from podscaler.controller.options import autoscaler_kinds
from podscaler.controller.options.settings import ControllerSettings
from podscaler.kube.client.client import Client
from podscaler.metrics.heapster import HeapsterService

log = logging.getLogger(__name__)

MANIFEST = "deploy/kustomize/base/rbac.yaml"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Permission:
    """A permission, as RBAC has it.

    Attributes:
        verb, group, resource, subresource: as in an RBAC rule.
        purpose: what does not work without the permission.
        namespace: the namespace; empty: all.
        name: the object's name, where a role may be limited to some objects; empty: all.
    """

    verb: str
    group: str
    resource: str
    subresource: str = ""
    purpose: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def shown(self) -> str:
        """The resource as RBAC rules write it; tests compare it with the roles of the manifests."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def _with_verbs(verbs: str, group: str, resource: str, subresource: str = "", *, purpose: str) -> list[Permission]:
    return [Permission(verb, group, resource, subresource, purpose) for verb in verbs.split()]


NEEDED = (
    *_with_verbs("list watch", "autoscaling", "horizontalpodautoscalers", purpose="no autoscaler is known"),
    *_with_verbs("update", "autoscaling", "horizontalpodautoscalers", "status", purpose="no status is written"),
    *_with_verbs("list watch", "", "pods", purpose="no autoscaler can decide"),
    *_with_verbs("get update", "apps", "deployments", "scale", purpose="Deployments are not scaled"),
    *_with_verbs("list", "metrics.k8s.io", "pods", purpose="cpu and memory are not known"),
    *_with_verbs("get list", "custom.metrics.k8s.io", "*", purpose="metrics of pods and objects are not known"),
    *_with_verbs("get list", "external.metrics.k8s.io", "*", purpose="external metrics are not known"),
    *_with_verbs("create patch", "", "events", purpose="events are not written"),
)
"""The permissions of every controller. Of scales only those of Deployments are checked: a role may exclude others."""


def of_histories(namespace: str) -> tuple[Permission, ...]:
    """The permissions to store histories in ConfigMaps of `namespace`; one ConfigMap is checked for all."""
    purpose = "histories do not survive a restart"
    names = {"get": history_maps.NAME, "create": "", "patch": history_maps.NAME}
    return tuple(
        Permission(verb, "", "configmaps", purpose=purpose, namespace=namespace, name=name)
        for verb, name in names.items()
    )


READ_VERBS = frozenset({"get", "list", "watch"})


def of_pod_autoscalers() -> tuple[Permission, ...]:
    """The permissions to manage PodAutoscalers."""
    kind = autoscaler_kinds.POD_AUTOSCALER
    return (
        *_with_verbs("list watch", kind.group, kind.plural, purpose="no PodAutoscaler is known"),
        *_with_verbs("update", kind.group, kind.plural, "status", purpose="no status of a PodAutoscaler is written"),
    )


def of_metrics_access() -> tuple[Permission, ...]:
    """The permissions to review access to /metrics."""
    purpose = "nobody can read /metrics"
    return (
        *_with_verbs("create", "authentication.k8s.io", "tokenreviews", purpose=purpose),
        *_with_verbs("create", "authorization.k8s.io", "subjectaccessreviews", purpose=purpose),
    )


def of_leases(namespace: str, name: str, *, is_sharded: bool) -> tuple[Permission, ...]:
    """The permissions to hold the Lease of that name, or with shards all Leases whose names begin with it.

    A single leader works without `watch`, but takes over later.
    """
    purpose = "no lease can be held, so nothing is done"
    verbs = dict.fromkeys(("get", "create", "update", "list"), purpose)
    verbs["watch"] = purpose if is_sharded else "a lease that is released is noticed late"
    if is_sharded:
        verbs["delete"] = "the leases of members that are gone stay"
    permissions = []
    for verb, verb_purpose in verbs.items():
        is_of_one_lease = verb in {"get", "update"} and not is_sharded
        lease_name = name if is_of_one_lease else ""
        permissions.append(
            Permission(
                verb, "coordination.k8s.io", "leases", purpose=verb_purpose, namespace=namespace, name=lease_name
            )
        )
    return tuple(permissions)


METRICS_APIS = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})


def of_heapster(service: HeapsterService) -> tuple[Permission, ...]:
    """The permission to read metrics through the API server's proxy of Heapster's Service."""
    if service.url:
        return ()
    purpose = "no metric is known"
    return (Permission("get", "", "services", "proxy", purpose, namespace=service.namespace, name=service.proxy_name),)


def needed(settings: ControllerSettings) -> tuple[Permission, ...]:
    """The permissions that a controller with these settings needs."""
    permissions = list(NEEDED)
    if settings.heapster is not None:
        permissions = [permission for permission in permissions if permission.group not in METRICS_APIS]
        permissions += of_heapster(settings.heapster)
    if settings.history_namespace:
        permissions += of_histories(settings.history_namespace)
    if autoscaler_kinds.POD_AUTOSCALER in settings.kinds:
        permissions += of_pod_autoscalers()
    if autoscaler_kinds.HPA not in settings.kinds:  # then HorizontalPodAutoscalers are watched only
        hpa_group = autoscaler_kinds.HPA.group
        permissions = [
            permission for permission in permissions if permission.group != hpa_group or permission.verb in READ_VERBS
        ]
    if settings.dry_run:
        permissions = [permission for permission in permissions if permission.verb in READ_VERBS]
    return tuple(permissions)


class _Allowed(msgspec.Struct):
    """The status of a SelfSubjectAccessReview."""

    allowed: bool = False


class _Review(msgspec.Struct):
    """The response to a SelfSubjectAccessReview."""

    status: _Allowed


async def warn(client: Client, permissions: tuple[Permission, ...] = NEEDED) -> None:
    """Log in one line which of `permissions` are missing, if any."""
    lacking = await find_missing(client, permissions)
    if lacking:
        log.warning("%s", summary(lacking, client))


async def find_missing(client: Client, permissions: tuple[Permission, ...] = NEEDED) -> list[Permission]:
    """The permissions that the API server does not grant; those that it cannot review count as granted."""
    are_allowed = await asyncio.gather(*(_is_allowed(client, permission) for permission in permissions))
    return [permission for permission, is_allowed in zip(permissions, are_allowed, strict=True) if not is_allowed]


def summary(lacking: Sequence[Permission], client: Client) -> str:
    """A sentence with the missing permissions (at least one), what does not work without each, and the remedy."""
    verbs: dict[tuple[str, str, str], list[str]] = {}
    for permission in lacking:
        scope = f" in the namespace {permission.namespace}" if permission.namespace else ""
        verbs.setdefault((_resource_text(permission), scope, permission.purpose), []).append(permission.verb)
    parts = [
        f"{', '.join(own_verbs)} {resource}{scope}" + (f" (without it {purpose})" if purpose else "")
        for (resource, scope, purpose), own_verbs in verbs.items()
    ]
    return (
        f"the API server {client.server} does not allow the user of {client.credentials_text} to: {'; '.join(parts)}. "
        f"Bind the user to the roles of {MANIFEST}, or install the Helm chart, which has the same; what is allowed "
        "works meanwhile, and the rest once it is granted"
    )


def _resource_text(permission: Permission) -> str:
    """The resource, its group and its subresource: `deployments.apps/scale`."""
    resource = ".".join(filter(None, (permission.resource, permission.group)))
    return f"{resource}/{permission.subresource}" if permission.subresource else resource


async def _is_allowed(client: Client, permission: Permission) -> bool:
    """Whether the API server grants a permission, by a SelfSubjectAccessReview; True if it cannot be reviewed."""
    attributes = {
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
        "namespace": permission.namespace,
        "name": permission.name,
    }
    review = {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": {name: attribute for name, attribute in attributes.items() if attribute}},
    }
    try:
        response = await client.post(REVIEWS, msgspec.json.encode(review), subject="selfsubjectaccessreviews")
        return msgspec.json.decode(response, type=_Review).status.allowed
    except (StatusError, msgspec.DecodeError) as error:
        log.debug("whether %s is allowed is not known: %s", permission, error)
        return True
