"""Reads and writes the scale subresource of an autoscaler's target.

`podscaler.controller.reconcile.observer` reads once at the start of a sync, and the reconciler writes with what it
read; `podscaler explain` reads. Reading uses discovery, because a target is named by kind; the version in its reference
does not matter. A scale that `podscaler.controller.informers.target_informer` has is not requested.

Source: docs/spec/decision.md 2 (Reconcile in order, steps 2, 3 and 11); docs/spec/controller.md 4 (Retry on scale
conflict) and 10 (REST requests).
"""

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from podscaler.api.typed.autoscaling import CrossVersionObjectReference, Scale, ScaleSpec
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.concurrency import WithoutSlot, keep_slot
from podscaler.base.errors import JSON_DECODE_ERRORS, StatusError
from podscaler.controller.informers.target_informer import TargetInformer
from podscaler.core import settle
from podscaler.kube.client import typed_responses, urls
from podscaler.kube.client.client import Client, is_conflict
from podscaler.kube.client.discovery import NO_KIND_MATCH, Discovery, RESTMapping
from podscaler.kube.informers.cache import Key

log = logging.getLogger(__name__)

RETRY_DELAY_S = settle.WRITE_RETRY_DELAY_NS / NANOSECONDS
JITTER_RATIO = 0.1
"""At most this part of RETRY_DELAY_S is added at random, as by client-go's DefaultRetry."""
_SCALE_DECODER = msgspec.json.Decoder(Scale)
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """The scale of a target, and where it was read, so that it can be written.

    Attributes:
        mapping: the REST resource of the target's kind.
        key: the target's namespace and name.
        kind: the kind in the autoscaler's reference, for messages.
        scale: the scale subresource as it was read.
    """

    mapping: RESTMapping
    key: Key
    kind: str
    scale: Scale

    @property
    def path(self) -> str:
        """The path of its scale subresource."""
        return _path(self.mapping, self.key)

    @property
    def subject(self) -> str:
        """Resource and name, for error messages."""
        _, name = self.key
        return f"{self.mapping.plural} {name}"

    @property
    def reference(self) -> str:
        """For the log: `<kind>/<namespace>/<name>`."""
        namespace, name = self.key
        return f"{self.kind}/{namespace}/{name}"


@dataclass(frozen=True, slots=True)
class ScaleWrite:
    """Whether a scale was written, and the errors of the attempts that failed, in order."""

    is_done: bool
    errors: Sequence[StatusError]


class ScaleClient:
    """The scale subresources of one API server.

    Args:
        discovery: maps kinds to resources.
        cached_scales: has scales from watches; None: every scale is requested.
        without_slot: entered while a sync waits for the response to a read, so that another sync can use its slot.
    """

    def __init__(
        self,
        client: Client,
        discovery: Discovery,
        *,
        clock: Clock,
        rng: random.Random,
        cached_scales: TargetInformer | None = None,
        without_slot: WithoutSlot = keep_slot,
    ) -> None:
        self._cached_scales = cached_scales
        self._without_slot = without_slot
        self._client = client
        self._discovery = discovery
        self._clock = clock
        self._rng = rng

    async def read(self, namespace: str, reference: CrossVersionObjectReference) -> ScaleTarget:
        """The scale of a target.

        Raises StatusError: with the reason `NoKindMatch` for every error of discovery; with the code 0 if the kind has
        no resource; else the error of the first resource, as `scaleForResourceMappings` of kube-controller-manager.
        """
        first_error: StatusError | None = None
        key = (namespace, reference.name)
        for mapping in await self._find_mappings(reference):
            try:
                scale = self._cached_scales.find(mapping, key) if self._cached_scales is not None else None
                return ScaleTarget(mapping, key, reference.kind, scale or await self._request(mapping, key))
            except StatusError as error:
                first_error = first_error or error
        raise first_error or StatusError("unrecognized resource", code=0)

    async def _request(self, mapping: RESTMapping, key: Key) -> Scale:
        """The scale as the API server has it; another sync may run meanwhile. Raises StatusError."""
        _, name = key
        async with self._without_slot():
            return await self._fetch_scale(_path(mapping, key), f"{mapping.plural} {name}")

    async def _find_mappings(self, reference: CrossVersionObjectReference) -> list[RESTMapping]:
        """One mapping for each resource: the preferred version serves the scale of all."""
        group = reference.api_version.rpartition("/")[0]
        by_plural: dict[str, RESTMapping] = {}
        try:
            for mapping in await self._discovery.mappings(group, reference.kind):
                by_plural.setdefault(mapping.plural, mapping)
        except StatusError as error:  # by the reason, the decision knows that the scale was not requested
            raise StatusError(error.message, code=error.code, reason=NO_KIND_MATCH) from error
        return list(by_plural.values())

    async def write(self, target: ScaleTarget, replicas: int) -> ScaleWrite:
        """Set the replicas of the target; after a conflict, read the scale and try again.

        It is tried `settle.MAX_WRITE_ATTEMPTS` times in all, as the replay assumes; errors are in the result.
        """
        errors: list[StatusError] = []
        while True:
            try:
                await self._put(target, replicas)
                return ScaleWrite(is_done=True, errors=errors)
            except StatusError as error:
                errors.append(error)
                target = await self._read_again(target)  # before the check, as upstream: also after the last attempt
                if len(errors) == settle.MAX_WRITE_ATTEMPTS or not is_conflict(error):
                    return ScaleWrite(is_done=False, errors=errors)
            await self._clock.sleep(RETRY_DELAY_S * (1 + self._rng.random() * JITTER_RATIO))

    async def _fetch_scale(self, path: str, subject: str) -> Scale:
        return typed_responses.with_kind(await self._client.fetch(path, subject=subject), _SCALE_DECODER)

    async def _put(self, target: ScaleTarget, replicas: int) -> None:
        """Write the scale, and pass the response to the cache of scales. Raises StatusError."""
        new_scale = msgspec.structs.replace(target.scale, spec=ScaleSpec(replicas))
        response = await self._client.put(target.path, _ENCODER.encode(new_scale), subject=target.subject)
        if self._cached_scales is None:
            return
        try:
            self._cached_scales.note_write(target.mapping, _SCALE_DECODER.decode(response))
        except JSON_DECODE_ERRORS:
            log.debug("the response to a write of %s's scale cannot be decoded", target.reference)

    async def _read_again(self, target: ScaleTarget) -> ScaleTarget:
        """The target with its scale as it is now; unchanged if it cannot be read."""
        try:
            return replace(target, scale=await self._fetch_scale(target.path, target.subject))
        except StatusError as error:
            log.warning("error getting latest scale for %s during conflict retry: %s", target.reference, error)
            return target


def _path(mapping: RESTMapping, key: Key) -> str:
    namespace, name = key
    prefix = urls.group_version(mapping.group, mapping.version)
    return prefix + urls.path("namespaces", namespace, mapping.plural, urls.object_name(name), "scale")
