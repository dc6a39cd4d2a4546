"""What namespaces mean for the objects in them: nothing is created where there is none, or in one that is going away.

`Objects` asks before every create and delete. Source: admission plugin NamespaceLifecycle (documented behaviour).
"""

from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Resource
from podscaler.base.errors import Cause
from podscaler.controlplane.storage.transactions import Transaction

NAMESPACES = "namespaces"
PERMANENT = frozenset({"default", "kube-system", "kube-public"})


def check_create(namespaces: Resource, resource: Resource, transaction: Transaction, namespace: str, name: str) -> None:
    """Raise StatusError 404 if the namespace is not there, 403 if it is being deleted."""
    entry = transaction.find(NAMESPACES, "", namespace)
    if entry is None:
        raise api_errors.not_found(namespaces, namespace)
    stored = entry.decode()
    phase = (stored.get("status") or {}).get("phase")
    if phase == "Terminating" or stored["metadata"].get("deletionTimestamp"):
        raise api_errors.forbidden(
            resource,
            name,
            f"unable to create new content in namespace {namespace} because it is being terminated",
            cause=Cause(
                reason="NamespaceTerminating",
                message=f"namespace {namespace} is being terminated",
                field="metadata.namespace",
            ),
        )


def check_delete(resource: Resource, name: str) -> None:
    """Raise StatusError 403 if `name` is a namespace that must stay."""
    if resource.key == NAMESPACES and name in PERMANENT:
        raise api_errors.forbidden(resource, name, "this namespace may not be deleted")
