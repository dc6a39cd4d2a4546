"""Lists the autoscalers of a namespace, of both kinds, and finds the one that the user means.

Called by `podscaler.cli.explain.explain_cluster`, which explains with the same autoscalers as the controller decides
with: those that share pods, and for a PodAutoscaler also the HorizontalPodAutoscalers of other controllers.
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

SHOWN = 10


class _Meta(msgspec.Struct, frozen=True):
    uid: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta = _Meta()


_OBJECT = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, slots=True)
class Autoscalers:
    """The autoscalers of one namespace, or of several.

    Attributes:
        found: the autoscalers by kind; of a kind that the cluster does not serve or show: none.
        writes: the last write of each one's status, by uid.
    """

    found: Mapping[AutoscalerKind, Sequence[Autoscaler]]
    writes: Mapping[str, StatusWrite] = field(default_factory=dict)

    def meant_by(self, request: ExplainRequest, namespace: str) -> Autoscaler:
        """The autoscaler that is meant. Raises UsageError."""
        kinds = KINDS if request.kind is None else (request.kind,)
        there = {"/".join(each.key): each for kind in kinds for each in self.found[kind]}
        meant = [key for key in there if request.matches(key)]
        if len(meant) == 1:
            return there[meant[0]]
        names = [each.removeprefix(f"{namespace}/") for each in explain_request.distinct_names(meant or list(there))]
        if meant:
            count = (
                f"{len(meant)} autoscalers" if request.name is None else f'{len(meant)} autoscalers "{request.name}"'
            )
            raise UsageError(f"the namespace {namespace} has {count}, name one: {wording.listed(names, SHOWN)}")
        listed = f"there are {wording.listed(names, SHOWN)}" if names else "there are none"
        kind = "" if request.kind is None else f"{request.kind.flag}/"
        named = "" if request.name is None else f' "{kind}{request.name}"'
        raise UsageError(f"no autoscaler{named} in the namespace {namespace}: {listed}")

    def all_of(self, kind: AutoscalerKind | None) -> list[Autoscaler]:
        """All of a kind; None: of both."""
        return [each for found in self.found if kind in (None, found) for each in self.found[found]]

    def by_namespace(self) -> "Iterator[Autoscalers]":
        """The autoscalers of each namespace, in the order of the names."""
        for namespace in sorted({each.key[0] for each in self.all_of(None)}):
            here = {kind: [each for each in found if each.key[0] == namespace] for kind, found in self.found.items()}
            yield Autoscalers(here, self.writes)

    def followed_with(self, autoscaler: Autoscaler, kinds: Iterable[AutoscalerKind]) -> list[Autoscaler]:
        """The autoscalers that the same controller manages, this one included.

        Args:
            autoscaler: the one to explain.
            kinds: those that its controller manages by its flags; the kind of the autoscaler is added.
        """
        wanted = {autoscaler.kind, *kinds}
        return [each for kind in KINDS if kind in wanted for each in self.found[kind]]

    def conflicting(self, autoscaler: Autoscaler, kinds: Iterable[AutoscalerKind]) -> frozenset[Key]:
        """The HorizontalPodAutoscalers of other controllers that scale the target of a PodAutoscaler."""
        if autoscaler.kind is HPA or HPA in kinds:
            return frozenset()
        target = autoscaler_informer.target_of(autoscaler)
        return frozenset(each.key for each in self.found[HPA] if autoscaler_informer.target_of(each) == target)

    def waiting_reason(self, autoscaler: Autoscaler) -> str:
        """Why the controller does nothing about a PodAutoscaler yet; empty where it works on it."""
        uids = {each.key: each.metadata.uid for each in self.found[HPA]}
        if autoscaler.kind is HPA or not handover.waits(autoscaler.metadata, uids.get):
            return ""
        return handover.waiting_message(autoscaler.metadata.annotations or {})


class _Wanted(NamedTuple):
    kind: AutoscalerKind
    is_needed: bool


async def read(client: Client, namespace: str, wanted: AutoscalerKind | None, settings: Settings) -> Autoscalers:
    """The autoscalers of a namespace. Raises StatusError, and UsageError where the kind that is meant is not served.

    Args:
        client: of the cluster.
        namespace: empty for all.
        wanted: the kind that is meant; None: either, if HorizontalPodAutoscalers can be listed at all.
        settings: how quantities are read, and the algorithm.
    """
    writes: dict[str, StatusWrite] = {}

    def note(raw: msgspec.Raw) -> None:
        latest = max(other_controllers.status_writes(raw), key=lambda each: each.at_ns, default=None)
        if latest is not None:
            writes[_OBJECT.decode(raw).metadata.uid] = latest

    found: dict[AutoscalerKind, Sequence[Autoscaler]] = {}
    for kind in (HPA, POD_AUTOSCALER):
        source = replace(observed_objects.autoscalers(settings, kind, note=note), path=kind.path(namespace))
        try:
            found[kind] = await all_pages.read(client, source)
        except StatusError as error:
            found[kind] = _absent(error, _Wanted(kind, kind is (wanted or HPA)))
    return Autoscalers(found, writes)


def _absent(error: StatusError, wanted: _Wanted) -> Sequence[Autoscaler]:
    """No autoscalers, where it does without those of the kind. Raises the error, or UsageError, where it does not."""
    is_unserved = is_not_served(error)
    if is_unserved and wanted == (POD_AUTOSCALER, True):
        raise UsageError(
            f"the API server does not serve {POD_AUTOSCALER.resource}: podscaler crd | kubectl apply -f -"
        ) from None
    if wanted.is_needed or isinstance(error, TransportError) or (error.code != 403 and not is_unserved):
        raise error
    if not is_unserved:
        log.warning("%s are left out: %s", wanted.kind.plural, error)
    return ()
