"""The token controller: fills Secrets of type kubernetes.io/service-account-token, and deletes them with the account.

`controlplane.controller_manager` runs the controller in a `control_loop.ControlLoop`; keys are namespace and name of
Secrets.

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
NAME_NOTE = "kubernetes.io/service-account.name"
UID_NOTE = "kubernetes.io/service-account.uid"

IssueForSecret = Callable[[Object, Object], str]
"""Returns a token of a ServiceAccount (first), bound to a Secret (second)."""


class TokenSecrets(Reconciler[Key]):
    """Reconciles Secrets of service account tokens. Keys are namespace and name of Secrets.

    Args:
        registry: the objects.
        issue: issues tokens.
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
        """Fill or delete the Secret."""
        secret = self._registry.find(SECRETS, *key)
        if secret is None or secret.get("type") != TYPE or "deletionTimestamp" in secret["metadata"]:
            return None
        notes = secret["metadata"].get("annotations") or {}
        account = self._registry.find(ACCOUNTS, key[0], notes.get(NAME_NOTE, ""))
        if account is None or notes.get(UID_NOTE, account["metadata"]["uid"]) != account["metadata"]["uid"]:
            await self._remove(key, secret)
        elif not {"token", "ca.crt", "namespace"} <= (secret.get("data") or {}).keys() or UID_NOTE not in notes:
            await self._registry.update(SECRETS, self._filled(secret, account))
        return None

    async def _remove(self, key: Key, secret: Object) -> None:
        await write_errors.ignoring_gone(self._registry.delete(SECRETS, *key, uid=secret["metadata"]["uid"]))

    def _filled(self, secret: Object, account: Object) -> Object:
        """The Secret with a token, the authority's certificate and the namespace."""
        metadata = secret["metadata"]
        notes = {**(metadata.get("annotations") or {}), UID_NOTE: account["metadata"]["uid"]}
        texts = {
            "ca.crt": self._ca_certificate,
            "namespace": metadata["namespace"],
            "token": self._issue(account, secret),
        }
        data = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        return {
            **secret,
            "metadata": {**metadata, "annotations": notes},
            "data": {**(secret.get("data") or {}), **data},
        }

    def _keys_of_account(self, event: ObjectEvent) -> list[Key]:
        namespace, name = selection.key_of(event.object)
        return [
            selection.key_of(secret)
            for secret in self._registry.list(SECRETS, namespace)
            if secret.get("type") == TYPE and (secret["metadata"].get("annotations") or {}).get(NAME_NOTE) == name
        ]


def _keys_of_secret(event: ObjectEvent) -> list[Key]:
    return [selection.key_of(event.object)] if event.object.get("type") == TYPE else []
