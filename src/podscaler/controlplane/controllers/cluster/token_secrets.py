"""The token controller: fills Secrets of type kubernetes.io/service-account-token, and deletes them with the account.

An annotation of the Secret names its ServiceAccount. `controlplane.controller_manager` runs the controller in a
`control_loop.ControlLoop`; keys are namespace and name of Secrets.

Source: upstream's tokens controller.
Differs: the token is bound to its Secret and expires after ten years; upstream's never expires.
"""

import base64
from collections.abc import Callable, Iterable, Sequence

from podscaler.api.resource.resources import Object
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.registry.registry import ObjectEvent, Registry

SECRETS = "secrets"
ACCOUNTS = "serviceaccounts"
TYPE = "kubernetes.io/service-account-token"
NAME_ANNOTATION = "kubernetes.io/service-account.name"
UID_ANNOTATION = "kubernetes.io/service-account.uid"
_DATA_KEYS = frozenset({"token", "ca.crt", "namespace"})
"""The keys of a filled Secret; another one: also in `_filled_secret`."""

IssueForSecret = Callable[[Object, Object], str]
"""Returns a token of a ServiceAccount (first), bound to a Secret (second)."""


class TokenSecrets(Reconciler[Key]):
    """Reconciles Secrets of service account tokens. Keys are namespace and name of Secrets.

    Args:
        registry: the objects.
        issue: issues the token of a Secret.
        ca_certificate: the PEM text of `ca.crt` in the Secret.
    """

    name = "serviceaccount-token-controller"

    def __init__(self, registry: Registry, issue: IssueForSecret, *, ca_certificate: str) -> None:
        self._registry = registry
        self._issue = issue
        self._ca_certificate = ca_certificate

    def watches(self) -> Sequence[Watched[Key]]:
        """Secrets, and their ServiceAccounts."""
        return [Watched(SECRETS, _keys_of_secret), Watched(ACCOUNTS, self._keys_of_account)]

    def prime(self) -> Iterable[Key]:
        """All Secrets of the type."""
        return [selection.key_of(secret) for secret in self._registry.list(SECRETS) if secret.get("type") == TYPE]

    async def sync(self, key: Key) -> float | None:
        """Fill a Secret, or delete one whose ServiceAccount is gone or replaced; returns None. Raises StatusError."""
        secret = self._registry.find(SECRETS, *key)
        if secret is None or secret.get("type") != TYPE or "deletionTimestamp" in secret["metadata"]:
            return None
        namespace, _ = key
        annotations = secret["metadata"].get("annotations") or {}
        account = self._registry.find(ACCOUNTS, namespace, annotations.get(NAME_ANNOTATION, ""))
        if account is None:
            await self._delete_secret(key, secret)
            return None
        account_uid = account["metadata"]["uid"]
        is_filled = (secret.get("data") or {}).keys() >= _DATA_KEYS and UID_ANNOTATION in annotations
        if annotations.get(UID_ANNOTATION, account_uid) != account_uid:
            await self._delete_secret(key, secret)
        elif not is_filled:
            await self._registry.update(SECRETS, self._filled_secret(secret, account))
        return None

    async def _delete_secret(self, key: Key, secret: Object) -> None:
        """Delete a Secret, which may be gone."""
        await write_errors.ignoring_gone(self._registry.delete(SECRETS, *key, uid=secret["metadata"]["uid"]))

    def _filled_secret(self, secret: Object, account: Object) -> Object:
        """The Secret with a token, the authority's certificate and the namespace."""
        metadata = secret["metadata"]
        annotations = {**(metadata.get("annotations") or {}), UID_ANNOTATION: account["metadata"]["uid"]}
        plain_data = {
            "ca.crt": self._ca_certificate,
            "namespace": metadata["namespace"],
            "token": self._issue(account, secret),
        }
        encoded_data = {field: base64.b64encode(plain.encode()).decode() for field, plain in plain_data.items()}
        return {
            **secret,
            "metadata": {**metadata, "annotations": annotations},
            "data": {**(secret.get("data") or {}), **encoded_data},
        }

    def _keys_of_account(self, event: ObjectEvent) -> list[Key]:
        """The token Secrets that name the changed ServiceAccount."""
        namespace, account_name = selection.key_of(event.object)
        token_secrets = [secret for secret in self._registry.list(SECRETS, namespace) if secret.get("type") == TYPE]
        return [selection.key_of(secret) for secret in token_secrets if _account_name(secret) == account_name]


def _account_name(secret: Object) -> str | None:
    """The name of the ServiceAccount of a Secret, None without the annotation."""
    name: str | None = (secret["metadata"].get("annotations") or {}).get(NAME_ANNOTATION)
    return name


def _keys_of_secret(event: ObjectEvent) -> list[Key]:
    """The key of a changed Secret if it is for a token."""
    return [selection.key_of(event.object)] if event.object.get("type") == TYPE else []
