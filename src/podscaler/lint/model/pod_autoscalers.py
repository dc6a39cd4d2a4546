"""Decodes and validates a PodAutoscaler (podscaler.dev/v1alpha1), as an API server and the controller do.

Called by `podscaler.lint.model.reading`. The object is decoded by its CustomResourceDefinition, then validated as a
HorizontalPodAutoscaler, whose spec it has. The CEL rules of the definition are left out: the validation of a
HorizontalPodAutoscaler names the field of an error more exactly.

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
from podscaler.lint.model.linted_item import APIError

GROUP = pod_autoscaler.GROUP
KIND = pod_autoscaler.KIND
API_VERSION = f"{GROUP}/{pod_autoscaler.VERSION}"
_NO_FIELD = "<nil>"
"""The field of an error that an API server adds where it could not run CEL rules because of another error."""


@dataclass(frozen=True, slots=True)
class DecodedPodAutoscaler:
    """A decoded PodAutoscaler.

    Attributes:
        written: the object without defaults.
        stored: the object with the defaults of its CustomResourceDefinition.
        strict_errors: the errors of strict decoding (unknown and repeated fields).
    """

    written: Object
    stored: Object
    strict_errors: tuple[str, ...]


@cache
def record() -> Resource:
    """The PodAutoscaler as a kind of the API, without CEL rules."""
    return records.of(_without_rules(pod_autoscaler.definition())).stored


def _without_rules(schema: Any) -> Any:
    """A schema, or a part of one, without its CEL rules at any depth."""
    if isinstance(schema, dict):
        return {name: _without_rules(member) for name, member in schema.items() if name != "x-kubernetes-validations"}
    return [_without_rules(element) for element in schema] if isinstance(schema, list) else schema


def decode(manifest: Object) -> DecodedPodAutoscaler:
    """A PodAutoscaler decoded from plain data. Raises DecodeError."""
    version = record().versions[0]
    assert version.decode is not None, "the schema of a custom resource is its definition's"
    decoded_object = version.decode(manifest)
    stored = semantics.copied(decoded_object.obj)
    version.default(stored)
    return DecodedPodAutoscaler(decoded_object.obj, stored, tuple(decoded_object.problems))


def in_v2(stored: Object) -> Object:
    """The object as autoscaling/v2, with quantities as texts. Raises DecodeError if it cannot be decoded as that."""
    return hpa.complete(decoding.decode_value(stored, "autoscaling/v2.HorizontalPodAutoscaler").obj)


def first_errors(errors: Iterable[FieldError]) -> Iterator[APIError]:
    """The first error of each field; a wrong quantity has four."""
    reported_fields: set[str] = set()
    for error in errors:
        if error.field != _NO_FIELD and error.field not in reported_fields:
            reported_fields.add(error.field)
            yield APIError(error.field, error.text)


def controller_errors(autoscaler: Object) -> Iterator[APIError]:
    """The errors of the controller's validation of an autoscaler of autoscaling/v2."""
    for error in hpa_validation.validate(autoscaler, None):
        yield APIError(error.field, error.text)
