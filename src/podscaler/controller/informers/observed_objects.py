"""Defines what informers cache, autoscalers and pods, and decodes them when an object changes.

Syncs take objects from the caches and decode nothing. A cached pod has only what decisions use, and its JSON if the
controller records its syncs to a file; a cached autoscaler is the whole object, because a write of its status sends it.
A further field of pods that decisions read: in `api.typed.pods`, `observation.Pod` and `api_conversion.pod`.

Source: docs/spec/controller.md 2 (Queueing) and 10 (REST requests).
"""

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

import msgspec

from podscaler.api.machinery.meta import ObjectMeta
from podscaler.api.typed.autoscaling import HorizontalPodAutoscaler
from podscaler.api.typed.pods import Pod, PodMeta
from podscaler.controller.informers import custom_autoscaler
from podscaler.controller.informers.interned_parts import InternedParts
from podscaler.controller.options.autoscaler_kinds import HPA, AutoscalerKind
from podscaler.core import algorithm
from podscaler.core.model import api_conversion, failure_policy, observation, spec
from podscaler.core.model.emulation import Emulation
from podscaler.core.model.settings import Settings
from podscaler.kube.informers.cache import Key
from podscaler.kube.informers.reflector import WatchSource

_AUTOSCALER = msgspec.json.Decoder(HorizontalPodAutoscaler)
_POD = msgspec.json.Decoder(Pod)
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Autoscaler:
    """A cached autoscaler.

    Attributes:
        metadata: the object's metadata.
        wire: the object as the API has it, with the metrics that the algorithm adds.
        spec: the spec as `podscaler.core.decide` takes it.
        kind: HorizontalPodAutoscaler or PodAutoscaler.
        fault: why the object is invalid; empty if there is no error.
    """

    metadata: ObjectMeta
    wire: HorizontalPodAutoscaler
    spec: spec.Spec
    kind: AutoscalerKind = HPA
    fault: str = ""

    @property
    def key(self) -> Key:
        """The namespace and the name, which for a PodAutoscaler has a prefix."""
        return self.kind.key(self.metadata.namespace, self.metadata.name)

    @property
    def described(self) -> str:
        """For the log: `horizontalpodautoscaler <namespace>/<name>`."""
        return f"{self.kind.word} {self.metadata.namespace}/{self.metadata.name}"


@dataclass(frozen=True, slots=True)
class CachedPod:
    """A cached pod: metadata, the pod as decisions read it, the JSON of its trimmed object (empty if not recorded)."""

    metadata: PodMeta
    core_pod: observation.Pod
    trimmed_json: bytes = b""


def autoscaler_source(
    settings: Settings, kind: AutoscalerKind = HPA, *, on_read: Callable[[msgspec.Raw], None] | None = None
) -> WatchSource[Autoscaler]:
    """The source for a watch of all autoscalers of a kind.

    Args:
        settings: has the emulated version of Kubernetes, whose rules quantities are read by, and the algorithm; that of
            v1.1 adds metrics from annotations.
        on_read: called with each object in JSON.
    """
    return WatchSource(kind.path(), kind.resource, _autoscaler_decoder(settings, kind, on_read))


def pod_source(rules: Emulation, *, with_json: bool = False) -> WatchSource[CachedPod]:
    """The source for a watch of all pods.

    Args:
        rules: of the emulated version of Kubernetes.
        with_json: whether cached pods have their JSON, for a recording.
    """
    return WatchSource("/api/v1/pods", "pods", _pod_decoder(rules, with_json=with_json))


def _autoscaler_decoder(
    settings: Settings, kind: AutoscalerKind, on_read: Callable[[msgspec.Raw], None] | None
) -> Callable[[msgspec.Raw], Autoscaler]:
    """A decoder of autoscalers in JSON. A spec that is equal to that of the version before is not read again.

    `on_read` is called with the JSON of each autoscaler; None: nothing is called.
    """
    decode = _AUTOSCALER.decode if kind is HPA else custom_autoscaler.decode
    rules, add_algorithm_metrics = settings.emulation, algorithm.of(settings).complete
    latest_by_key: WeakValueDictionary[Key, Autoscaler] = WeakValueDictionary()

    def decode_autoscaler(autoscaler_json: msgspec.Raw) -> Autoscaler:
        if on_read is not None:
            on_read(autoscaler_json)
        completed = add_algorithm_metrics(decode(autoscaler_json))
        wire = completed.wire
        key = kind.key(wire.metadata.namespace, wire.metadata.name)
        earlier = latest_by_key.get(key)
        if earlier is not None and _has_same_spec(earlier.wire, wire):
            parsed_spec = earlier.spec  # most events are of a status
        elif kind is HPA:
            parsed_spec = spec.of(wire, rules)
        else:  # its key has the prefix of its kind
            parsed_spec = msgspec.structs.replace(spec.of(wire, rules), key="/".join(key))
        fault = completed.fault or ("" if kind is HPA else custom_autoscaler.fault(autoscaler_json))
        autoscaler = Autoscaler(wire.metadata, wire, parsed_spec, kind, fault)
        latest_by_key[key] = autoscaler
        return autoscaler

    return decode_autoscaler


def _has_same_spec(old: HorizontalPodAutoscaler, new: HorizontalPodAutoscaler) -> bool:
    """Whether two versions of an autoscaler have the same spec and failure policy."""
    old_policy = failure_policy.policy_annotations(old.metadata.annotations or {})
    new_policy = failure_policy.policy_annotations(new.metadata.annotations or {})
    return old.spec == new.spec and old_policy == new_policy


def _pod_decoder(rules: Emulation, *, with_json: bool) -> Callable[[msgspec.Raw], CachedPod]:
    """A decoder of pods in JSON, by the emulated version's rules; `with_json`: results have the pod's JSON, too."""
    shared = InternedParts()

    def decode_pod(pod_json: msgspec.Raw) -> CachedPod:
        wire = _POD.decode(pod_json)
        meta = shared.intern_metadata(wire.metadata)
        return CachedPod(
            meta, shared.intern_pod(api_conversion.pod(wire, rules), meta), _trimmed_json(wire) if with_json else b""
        )

    return decode_pod


def _trimmed_json(wire: Pod) -> bytes:
    """The pod in JSON, without uid and resourceVersion: no decision reads them, and equal pods have equal texts."""
    metadata = msgspec.structs.replace(wire.metadata, uid="", resource_version="")
    return _ENCODER.encode(msgspec.structs.replace(wire, metadata=metadata))
