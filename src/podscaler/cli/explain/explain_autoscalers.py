"""Lists the HorizontalPodAutoscalers and PodAutoscalers of a namespace, and finds the one that the user names.

Called by `podscaler.cli.explain.explain_cluster` and the commands of `podscaler.cli.diagnosis`. Other autoscalers
matter because the controller decides with them, too: those that share pods, and for a PodAutoscaler also
HorizontalPodAutoscalers with the same target. A key is a namespace and a name; only keys of PodAutoscalers have their
kind in the name (`podautoscaler/web`), so that the keys of both kinds differ.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

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
        status_writes: the last write of each status, by the autoscaler's uid; read by `find_status_write`.
    """

    by_kind: Mapping[AutoscalerKind, Sequence[Autoscaler]]
    status_writes: Mapping[str, StatusWrite] = field(default_factory=dict)

    def get_requested(self, request: ExplainRequest, namespace: str) -> Autoscaler:
        """The one autoscaler that the request matches. Raises UsageError if none or several match.

        Args:
            request: names the autoscaler, as far as the user did.
            namespace: the one that was read, for messages.
        """
        candidates = self.all_of(request.kind)
        matching = [candidate for candidate in candidates if request.matches("/".join(candidate.key))]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise UsageError(_ambiguity_message(request, namespace, matching))
        raise UsageError(_absence_message(request, namespace, candidates))

    def find_status_write(self, autoscaler: Autoscaler) -> StatusWrite | None:
        """The last write of the status, which shows which controller manages the autoscaler; None: not known."""
        return self.status_writes.get(autoscaler.metadata.uid)

    def all_of(self, kind: AutoscalerKind | None) -> list[Autoscaler]:
        """All autoscalers of a kind; None: of both kinds."""
        kinds = KINDS if kind is None else (kind,)
        return [autoscaler for listed_kind in kinds for autoscaler in self.by_kind[listed_kind]]

    def by_namespace(self) -> "Iterator[Autoscalers]":
        """The autoscalers of each namespace, in the order of the names."""
        for namespace in sorted({autoscaler.key[0] for autoscaler in self.all_of(None)}):
            by_kind = {}
            for kind, autoscalers in self.by_kind.items():
                by_kind[kind] = [autoscaler for autoscaler in autoscalers if autoscaler.key[0] == namespace]
            yield Autoscalers(by_kind, self.status_writes)

    def managed_with(self, autoscaler: Autoscaler, kinds: Iterable[AutoscalerKind]) -> list[Autoscaler]:
        """The autoscalers that the same controller manages, this one included.

        Args:
            kinds: the kinds that its controller manages by its flags; the autoscaler's own kind is added.
        """
        managed_kinds = {autoscaler.kind, *kinds}
        return [managed for kind in KINDS if kind in managed_kinds for managed in self.by_kind[kind]]

    def conflicting_hpa_keys(self, autoscaler: Autoscaler, kinds: Iterable[AutoscalerKind]) -> frozenset[Key]:
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


def _ambiguity_message(request: ExplainRequest, namespace: str, matching: Sequence[Autoscaler]) -> str:
    """The error that several autoscalers match the request."""
    name_text = "" if request.name is None else f' "{request.name}"'
    count_text = f"{len(matching)} autoscalers{name_text}"
    return f"the namespace {namespace} has {count_text}, name one: {_names_text(matching, namespace)}"


def _absence_message(request: ExplainRequest, namespace: str, candidates: Sequence[Autoscaler]) -> str:
    """The error that none of the candidates, the autoscalers of the requested kind, matches the request."""
    kind_prefix = "" if request.kind is None else f"{request.kind.flag}/"
    name_text = "" if request.name is None else f' "{kind_prefix}{request.name}"'
    others_text = f"there are {_names_text(candidates, namespace)}" if candidates else "there are none"
    return f"no autoscaler{name_text} in the namespace {namespace}: {others_text}"


def _names_text(autoscalers: Sequence[Autoscaler], namespace: str) -> str:
    """The names of autoscalers of a namespace for messages, with their kinds if there are two."""
    names = explain_request.distinct_names(["/".join(autoscaler.key) for autoscaler in autoscalers])
    return wording.listed([name.removeprefix(f"{namespace}/") for name in names], SHOWN_NAMES_MAX)


async def read_autoscalers(
    client: Client, namespace: str, requested_kind: AutoscalerKind | None, settings: Settings
) -> Autoscalers:
    """The autoscalers of a namespace.

    A kind is needed if there is nothing to explain without it. Another kind that is forbidden or not served is empty.

    Args:
        namespace: its name; empty: all namespaces.
        requested_kind: the kind that the user named, which is needed; None: HorizontalPodAutoscalers are needed.
        settings: how quantities are read, and the algorithm.

    Raises UsageError if PodAutoscalers are needed and not served, StatusError for other failures.
    """
    writes_by_uid: dict[str, StatusWrite] = {}

    def keep_latest(autoscaler_json: msgspec.Raw) -> None:
        status_writes = other_controllers.status_writes(autoscaler_json)
        latest = max(status_writes, key=lambda status_write: status_write.at_ns, default=None)
        if latest is not None:
            writes_by_uid[_UID_DECODER.decode(autoscaler_json).metadata.uid] = latest

    by_kind: dict[AutoscalerKind, Sequence[Autoscaler]] = {}
    for kind in KINDS:
        source = replace(
            observed_objects.autoscaler_source(settings, kind, on_read=keep_latest), path=kind.path(namespace)
        )
        try:
            by_kind[kind] = await all_pages.read(client, source)
        except StatusError as error:
            if kind is (requested_kind or HPA):
                _raise_for_needed(error, kind)
            _check_can_be_left_out(error, kind)
            by_kind[kind] = ()
    return Autoscalers(by_kind, writes_by_uid)


def _raise_for_needed(error: StatusError, kind: AutoscalerKind) -> NoReturn:
    """Raise the error of listing a needed kind; UsageError with a remedy if PodAutoscalers are not served."""
    if kind is POD_AUTOSCALER and is_not_served(error):
        raise UsageError(
            f"the API server does not serve {POD_AUTOSCALER.resource}: podscaler crd | kubectl apply -f -"
        ) from None
    raise error


def _check_can_be_left_out(error: StatusError, kind: AutoscalerKind) -> None:
    """Raise the error of listing a kind that is not needed, unless it is not served, or forbidden (logs a warning)."""
    if is_not_served(error):
        return
    if isinstance(error, TransportError) or error.code != 403:
        raise error
    log.warning("%s are left out: %s", kind.plural, error)
