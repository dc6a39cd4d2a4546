"""What the API server and the controller make of a PodAutoscaler (podscaler.dev/v1alpha1).

Called by `reading`. Such an object is read by its definition, and by the rules of a HorizontalPodAutoscaler, whose spec
it has. The definition holds them as CEL, too, which is left out here: a HorizontalPodAutoscaler's own say more exactly
where the fault is.

Source: `podscaler crd`; docs/spec/api.md 2 (Validation).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from podscaler.api.crd import records
from podscaler.api.kinds.autoscaling import hpa, hpa_validation, pod_autoscaler
from podscaler.api.machinery.field import FieldError
from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Object, Resource
from podscaler.api.schema import decoding
from podscaler.lint.model.items import APIFinding

GROUP = pod_autoscaler.GROUP
KIND = pod_autoscaler.KIND
API_VERSION = f"{GROUP}/{pod_autoscaler.VERSION}"
_NO_FIELD = "<nil>"
"""How API servers name the place of a fault that repeats another one in other words."""


@dataclass(frozen=True, slots=True)
class DecodedPodAutoscaler:
    """One that was read by its definition: as written, with the definition's defaults, and what is odd about it."""

    given: Object
    stored: Object
    problems: tuple[str, ...]


@cache
def record() -> Resource:
    """As an API server serves it that has the definition, but for the rules."""
    return records.of(_without_rules(pod_autoscaler.definition())).stored


def _without_rules(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _without_rules(member) for name, member in part.items() if name != "x-kubernetes-validations"}
    return [_without_rules(item) for item in part] if isinstance(part, list) else part


def decoded(value: Object) -> DecodedPodAutoscaler:
    """As an API server reads it that has the definition. Raises DecodeError."""
    version = record().versions[0]
    assert version.decode is not None, "the schema of a custom resource is its definition's"
    found = version.decode(value)
    stored = semantics.copied(found.obj)
    version.default(stored)
    return DecodedPodAutoscaler(found.obj, stored, tuple(found.problems))


def in_v2(stored: Object) -> Object:
    """As an autoscaler of autoscaling/v2, quantities as texts. Raises DecodeError where it cannot be read as one."""
    return hpa.complete(decoding.decode_value(stored, "autoscaling/v2.HorizontalPodAutoscaler").obj)


def refused(found: Iterable[FieldError]) -> Iterator[APIFinding]:
    """What a server says by the definition, each field once: a wrong quantity is refused in four ways at a time."""
    seen: set[str] = set()
    for error in found:
        if error.field != _NO_FIELD and error.field not in seen:
            seen.add(error.field)
            yield APIFinding(error.field, error.text)


def refused_by_controller(autoscaler: Object) -> Iterator[APIFinding]:
    """What is wrong with the spec of an autoscaler of autoscaling/v2."""
    for error in hpa_validation.validate(autoscaler, None):
        yield APIFinding(error.field, error.text)
