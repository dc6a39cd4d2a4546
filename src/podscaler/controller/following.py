"""What the controller follows: autoscalers and pods, read into facts once when they change.

The loop keeps a cache of each; syncs take objects from there and parse nothing. A cached pod keeps only what decisions
use (where somebody records, as text too), a cached autoscaler the whole object, because status writes carry it.

Source: controller.md 2 and 10.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from podscaler.api.autoscaling import HorizontalPodAutoscaler
from podscaler.api.meta import ObjectMeta
from podscaler.api.pods import Pod, PodMeta
from podscaler.controller.shared_parts import SharedParts
from podscaler.core import intake, model, spec
from podscaler.core.emulation import Emulation
from podscaler.kube.watch import Source

_AUTOSCALER = msgspec.json.Decoder(HorizontalPodAutoscaler)
_POD = msgspec.json.Decoder(Pod)
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """A cached autoscaler: the object, and its spec as facts."""

    metadata: ObjectMeta
    wire: HorizontalPodAutoscaler
    spec: spec.Spec


@dataclass(frozen=True, slots=True)
class CachedPod:
    """A cached pod: what finds it, its facts, and the JSON of its trimmed object (empty where nobody records)."""

    metadata: PodMeta
    facts: model.Pod
    text: bytes = b""


def autoscalers(rules: Emulation) -> Source[Autoscaler]:
    """All autoscalers, in autoscaling/v2."""
    return Source(
        "/apis/autoscaling/v2/horizontalpodautoscalers", "horizontalpodautoscalers.autoscaling", _autoscaler(rules)
    )


def pods(rules: Emulation, *, with_text: bool = False) -> Source[CachedPod]:
    """All pods."""
    return Source("/api/v1/pods", "pods", _pod(rules, with_text=with_text))


def _autoscaler(rules: Emulation) -> Callable[[msgspec.Raw], Autoscaler]:
    def read(raw: msgspec.Raw) -> Autoscaler:
        wire = _AUTOSCALER.decode(raw)
        return Autoscaler(wire.metadata, wire, spec.of(wire, rules))

    return read


def _pod(rules: Emulation, *, with_text: bool) -> Callable[[msgspec.Raw], CachedPod]:
    shared = SharedParts()

    def read(raw: msgspec.Raw) -> CachedPod:
        wire = _POD.decode(raw)
        meta = shared.metadata(wire.metadata)
        return CachedPod(meta, shared.facts(intake.pod(wire, rules), meta), _text(wire) if with_text else b"")

    return read


def _text(wire: Pod) -> bytes:
    """The pod without what changes although nothing does that a decision looks at."""
    metadata = msgspec.structs.replace(wire.metadata, uid="", resource_version="")
    return _ENCODER.encode(msgspec.structs.replace(wire, metadata=metadata))
