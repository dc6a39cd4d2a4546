"""Indexes the webhooks of the stored configurations, in the order in which they are called.

`webhook_admission` makes the index by `watch_webhooks`, and reads it for every write; commits update it, so that no
write lists configurations. Another parsed field of webhooks: in `Webhook` and `_webhook`. `admission_policies` makes a
`Webhook` of each policy, so that `matching` treats both alike.

Source: kube-apiserver's configuration managers: configurations by name, their webhooks in the order of the list.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field

from podscaler.api.kinds.policy import webhookconfiguration
from podscaler.api.machinery import selectors
from podscaler.api.machinery.selectors import Selector
from podscaler.api.resource.resources import Object
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.storage.change_log import StoreEvent

MUTATING = webhookconfiguration.MUTATING.key
VALIDATING = webhookconfiguration.VALIDATING.key
"""The two resources of configurations, as `Resource.key`."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration.

    Attributes:
        identity: the name of the configuration and the index in it, for the order of calls and for comparisons.
        source: the webhook as it is stored, a JSON object.
        authority: the PEM of the certificate authorities; empty: those of the host.
        namespaces, labels: the selectors of namespaces and of objects.
    """

    identity: tuple[str, int]
    source: Object
    authority: bytes
    namespaces: Selector
    labels: Selector

    @property
    def name(self) -> str:
        """The name in messages."""
        return str(self.source["name"])

    @property
    def ignores_failures(self) -> bool:
        """Whether a write proceeds where the call fails."""
        return self.source.get("failurePolicy") == "Ignore"


@dataclass(slots=True)
class WebhookIndex:
    """The webhooks of all configurations; `sort` is to be called after `put`.

    Attributes:
        mutating, validating: the webhooks in calling order, which `sort` renews.
    """

    mutating: Sequence[Webhook] = ()
    validating: Sequence[Webhook] = ()
    _configurations: dict[str, dict[str, Sequence[Webhook]]] = field(
        default_factory=lambda: {MUTATING: {}, VALIDATING: {}}
    )

    def put(self, resource_key: str, configuration: Object) -> None:
        """Add a configuration of MUTATING or VALIDATING, or replace it."""
        name = configuration["metadata"]["name"]
        webhooks = configuration.get("webhooks") or []
        self._configurations[resource_key][name] = [
            _webhook((name, index), source) for index, source in enumerate(webhooks)
        ]

    def sort(self) -> None:
        """Renew the lists after changes."""
        self.mutating = self._in_calling_order(MUTATING)
        self.validating = self._in_calling_order(VALIDATING)

    def _in_calling_order(self, resource_key: str) -> list[Webhook]:
        """The webhooks of one resource: configurations by name, their webhooks in the order of the list."""
        return [webhook for _, webhooks in sorted(self._configurations[resource_key].items()) for webhook in webhooks]

    def apply(self, events: list[StoreEvent]) -> None:
        """Apply the events of a commit."""
        is_changed = False
        for event in events:
            resource_key = event.subject.resource
            if resource_key not in self._configurations:
                continue
            is_changed = True
            if event.entry is None:
                self._configurations[resource_key].pop(event.subject.name, None)
            else:
                self.put(resource_key, event.entry.decode())
        if is_changed:
            self.sort()


def watch_webhooks(objects: Objects) -> WebhookIndex:
    """An index of the configurations of `objects` that is updated by every commit."""
    index = WebhookIndex()
    for resource_key in (MUTATING, VALIDATING):
        if objects.knows(resource_key):
            for entry in objects.list(resource_key).entries:
                index.put(resource_key, entry.decode())
    index.sort()
    objects.listen(index.apply)
    return index


def _webhook(identity: tuple[str, int], source: Object) -> Webhook:
    """A webhook with its parsed authority and selectors."""
    return Webhook(
        identity,
        source,
        authority=_authority((source.get("clientConfig") or {}).get("caBundle") or ""),
        namespaces=selectors.from_label_selector(source.get("namespaceSelector") or {}),
        labels=selectors.from_label_selector(source.get("objectSelector") or {}),
    )


def _authority(ca_bundle: str) -> bytes:
    """The PEM in a `caBundle`, which is base64; other text as it is: then the call fails with a message about it."""
    try:
        return base64.b64decode(ca_bundle)
    except binascii.Error:
        return ca_bundle.encode()
