"""Lists the HorizontalPodAutoscalers and PodAutoscalers of a namespace, and finds the one that the user names.

Called by `podscaler.cli.explain.explain_cluster` and the commands of `podscaler.cli.diagnosis`. Other autoscalers
matter because the controller decides with them, too: those that share pods, and for a PodAutoscaler also
HorizontalPodAutoscalers with the same target.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from podscaler.base.errors import StatusError, UsageError
from podscaler.cli.commands import all_pages
from podscaler.cli.explain import explain_request
from podscaler.cli.explain.explain_request import ExplainRequest
from podscaler.controller.informers import autoscaler_informer, handover, observed_objects, other_controllers
from podscaler.controller.informers.observed_objects import Autoscaler
from podscaler.controller.informers.other_controllers import StatusWrite
from podscaler.controller.options.autoscaler_kinds import HPA, KINDS, POD_AUTOSCALER, AutoscalerKind
from podscaler.core.model.settings import Settings
from podscaler.explain import wording
from podscaler.kube.client.client import Client, is_not_served
from podscaler.kube.informers.cache import Key
from podscaler.kube.transport.transport import TransportError

log = logging.getLogger(__name__)

SHOWN_NAMES_MAX = 10
"""How many names an error message lists."""


class _Meta(msgspec.Struct, frozen=True):
    """The field of the metadata that is read."""

    uid: str = ""


class _ObjectUid(msgspec.Struct):
    """An object, of which only the uid is read."""

    metadata: _Meta = _Meta()


_UID_DECODER = msgspec.json.Decoder(_ObjectUid)


@dataclass(frozen=True, slots=True)
class Autoscalers:
    """The autoscalers of one namespace, or of several.

    Attributes:
        by_kind: the autoscalers of each kind; empty for a kind that is not served or may not be listed.
        writes: the last write of each autoscaler's status, by the autoscaler's uid.
    """

    by_kind: Mapping[AutoscalerKind, Sequence[Autoscaler]]
    writes: Mapping[str, StatusWrite] = field(default_factory=dict)

    def get_requested(self, request: ExplainRequest, namespace: str) -> Autoscaler:
        """The one autoscaler that the request matches. Raises UsageError if none or several match.

        Args:
            request: names the autoscaler, as far as the user did.
            namespace: the one that was read, for messages.
        """
        kinds = KINDS if request.kind is None else (request.kind,)
        by_key = {"/".join(autoscaler.key): autoscaler for kind in kinds for autoscaler in self.by_kind[kind]}
        matching = [key for key in by_key if request.matches(key)]
        if len(matching) == 1:
            return by_key[matching[0]]
        names = [key.removeprefix(f"{namespace}/") for key in explain_request.distinct_names(matching or list(by_key))]
        if matching:
            name_text = "" if request.name is None else f' "{request.name}"'
            count_text = f"{len(matching)} autoscalers{name_text}"
            names_text = wording.listed(names, SHOWN_NAMES_MAX)
            raise UsageError(f"the namespace {namespace} has {count_text}, name one: {names_text}")
        names_text = f"there are {wording.listed(names, SHOWN_NAMES_MAX)}" if names else "there are none"
        kind_prefix = "" if request.kind is None else f"{request.kind.flag}/"
        name_text = "" if request.name is None else f' "{kind_prefix}{request.name}"'
        raise UsageError(f"no autoscaler{name_text} in the namespace {namespace}: {names_text}")

    def all_of(self, kind: AutoscalerKind | None) -> list[Autoscaler]:
        """All autoscalers of a kind; None: of both kinds."""
        kinds = [listed_kind for listed_kind in self.by_kind if kind in (None, listed_kind)]
        return [autoscaler for listed_kind in kinds for autoscaler in self.by_kind[listed_kind]]

    def by_namespace(self) -> "Iterator[Autoscalers]":
        """The autoscalers of each namespace, in the order of the names."""
        for namespace in sorted({autoscaler.key[0] for autoscaler in self.all_of(None)}):
            by_kind = {}
            for kind, autoscalers in self.by_kind.items():
                by_kind[kind] = [autoscaler for autoscaler in autoscalers if autoscaler.key[0] == namespace]
            yield Autoscalers(by_kind, self.writes)

    def managed_with(self, autoscaler: Autoscaler, kinds: Iterable[AutoscalerKind]) -> list[Autoscaler]:
        """The autoscalers that the same controller manages, this one included.

        Args:
            kinds: the kinds that its controller manages by its flags; the autoscaler's own kind is added.
        """
        managed_kinds = {autoscaler.kind, *kinds}
        return [managed for kind in KINDS if kind in managed_kinds for managed in self.by_kind[kind]]

    def conflicting(self, autoscaler: Autoscaler, kinds: Iterable[AutoscalerKind]) -> frozenset[Key]:
        """The keys of the HorizontalPodAutoscalers that scale the target of a PodAutoscaler.

        Empty for a HorizontalPodAutoscaler, and if the controller manages both kinds.

        Args:
            kinds: the kinds that its controller manages.
        """
        if autoscaler.kind is HPA or HPA in kinds:
            return frozenset()
        target = autoscaler_informer.target_of(autoscaler)
        return frozenset(hpa.key for hpa in self.by_kind[HPA] if autoscaler_informer.target_of(hpa) == target)

    def waiting_reason(self, autoscaler: Autoscaler) -> str:
        """Why a PodAutoscaler that replaces a HorizontalPodAutoscaler is not synced yet; empty if it is synced."""
        uid_by_key = {hpa.key: hpa.metadata.uid for hpa in self.by_kind[HPA]}
        if autoscaler.kind is HPA or not handover.is_waiting(autoscaler.metadata, uid_by_key.get):
            return ""
        return handover.waiting_message(autoscaler.metadata.annotations or {})


class _ListedKind(NamedTuple):
    """A kind to list; `is_needed`: without its autoscalers there is nothing to explain."""

    kind: AutoscalerKind
    is_needed: bool


async def read(
    client: Client, namespace: str, requested_kind: AutoscalerKind | None, settings: Settings
) -> Autoscalers:
    """The autoscalers of a namespace. A kind that is not needed may be forbidden or not served; it is empty then.

    Args:
        namespace: its name; empty: all namespaces.
        requested_kind: the kind that the user named, which is needed; None: HorizontalPodAutoscalers are needed.
        settings: how quantities are read, and the algorithm.

    Raises UsageError if PodAutoscalers are needed and not served, StatusError for other failures.
    """
    writes: dict[str, StatusWrite] = {}

    def keep_latest(autoscaler_json: msgspec.Raw) -> None:
        status_writes = other_controllers.status_writes(autoscaler_json)
        latest = max(status_writes, key=lambda status_write: status_write.at_ns, default=None)
        if latest is not None:
            writes[_UID_DECODER.decode(autoscaler_json).metadata.uid] = latest

    by_kind: dict[AutoscalerKind, Sequence[Autoscaler]] = {}
    for kind in (HPA, POD_AUTOSCALER):
        source = replace(
            observed_objects.autoscaler_source(settings, kind, on_read=keep_latest), path=kind.path(namespace)
        )
        try:
            by_kind[kind] = await all_pages.read(client, source)
        except StatusError as error:
            by_kind[kind] = _after_failed_list(error, _ListedKind(kind, kind is (requested_kind or HPA)))
    return Autoscalers(by_kind, writes)


def _after_failed_list(error: StatusError, listed_kind: _ListedKind) -> Sequence[Autoscaler]:
    """No autoscalers of a kind that is not needed, and not served or forbidden; else raises the error or UsageError."""
    is_unserved = is_not_served(error)
    if is_unserved and listed_kind == (POD_AUTOSCALER, True):
        raise UsageError(
            f"the API server does not serve {POD_AUTOSCALER.resource}: podscaler crd | kubectl apply -f -"
        ) from None
    if listed_kind.is_needed or isinstance(error, TransportError) or (error.code != 403 and not is_unserved):
        raise error
    if not is_unserved:
        log.warning("%s are left out: %s", listed_kind.kind.plural, error)
    return ()
