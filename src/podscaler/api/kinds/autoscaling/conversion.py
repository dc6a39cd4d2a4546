"""Converts a HorizontalPodAutoscaler to any of its API versions, and lists the losses of the conversion.

Called by `podscaler.cli.commands.convert`. The API server converts by the same records (VERSIONS); only the list of
losses is made here. A new version: its conversion module, its record in `hpa_removed_versions`, and _ANNOTATIONS_READ.

    converted = conversion.convert(autoscaler, "autoscaling/v1")
    converted.obj        {"kind": ..., "apiVersion": "autoscaling/v1", ...}
    converted.losses     (Loss("spec.metrics[2]", "autoscaling/v1 has no place for it"),)

Invariants: objects go through the stored form (v2), complete with its defaults; a loss is a value that the conversion
back from the target version does not restore, or for which v2 has no field. Fields have their names in v2, except for
those that only the given version has. Values that conversion adds (explicit zeros) are no loss. Arguments are not
changed.

Source: docs/spec/api.md 4 (Conversion) and 6 (Older versions).
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podscaler.api.kinds.autoscaling import (
    alpha_custom_metrics,
    hpa,
    hpa_annotations,
    hpa_extensions_v1beta1,
    hpa_removed_versions,
    hpa_v2alpha1,
    hpa_v2beta1,
    hpa_v2beta2,
)
from podscaler.api.kinds.autoscaling.alpha_custom_metrics import Expanded
from podscaler.api.resource import semantics
from podscaler.api.resource.resources import Object, Version
from podscaler.api.schema import canonical
from podscaler.api.text import json_text

KIND = hpa.RESOURCE.kind
STORED_API_VERSION = "autoscaling/v2"
VERSIONS: dict[str, Version] = {
    f"{record.group}/{version.version}": version
    for record in (hpa_removed_versions.AUTOSCALING, hpa_removed_versions.EXTENSIONS)
    for version in record.versions
}
"""apiVersion -> the version, for all versions of the kind, the newest first."""

_V1_ANNOTATIONS = frozenset(hpa_annotations.MESSAGES)
_ANNOTATIONS_READ = {
    STORED_API_VERSION: frozenset[str](),
    "autoscaling/v1": _V1_ANNOTATIONS,
    hpa_v2beta2.API_VERSION: hpa_annotations.RESERVED - _V1_ANNOTATIONS,
    hpa_v2beta1.API_VERSION: frozenset({hpa_annotations.BEHAVIOR}),
    hpa_v2alpha1.API_VERSION: _V1_ANNOTATIONS - {hpa_annotations.CONDITIONS},
    hpa_extensions_v1beta1.API_VERSION: _V1_ANNOTATIONS,
}
"""apiVersion -> the reserved annotations (`hpa_annotations`) that the version reads; it drops the others."""

_WITH_ALPHA_METRICS = frozenset({"autoscaling/v1", hpa_extensions_v1beta1.API_VERSION})
"""The versions of the releases that had custom metrics in annotations, which `alpha_custom_metrics` expands."""
_STATUS_ANNOTATIONS = frozenset({hpa_annotations.CURRENT_METRICS, hpa_annotations.CONDITIONS})
_METRIC_LISTS = (("spec", "metrics"), ("status", "currentMetrics"))
"""(section of an autoscaler, its field with a list of metrics)."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A value that a conversion loses or changes.

    Attributes:
        field: its path: `spec.metrics[2]`.
        reason: why it is lost, or the value to which it is changed.
    """

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Converted:
    """An object in another version, and the losses of the conversion."""

    obj: Object
    losses: tuple[Loss, ...]


def convert(autoscaler: Object, to: str) -> Converted:
    """The autoscaler in the version `to`, with a status only where it has one, in fields or annotations.

    Args:
        autoscaler: an object decoded by `api.schema.decoding`, in any of VERSIONS; need not be valid.
        to: an apiVersion, one of VERSIONS.

    Raises:
        KeyError: `to` or the autoscaler's version is not in VERSIONS.
        DecodeError: a tolerance annotation of v2beta2 is no quantity.
    """
    source_version = autoscaler["apiVersion"]
    has_alpha_metrics = source_version in _WITH_ALPHA_METRICS
    expanded = alpha_custom_metrics.expand(autoscaler) if has_alpha_metrics else Expanded(autoscaler, {})
    stored = _stored_form(expanded.obj, source_version)
    target = VERSIONS[to].from_storage(semantics.copied(stored))
    returned = _stored_form(target, to)
    if not _has_status(expanded.obj):  # without one, all forms have the default status
        for form in (stored, target, returned):
            form.pop("status", None)
    annotation_losses = [
        Loss(f'metadata.annotations["{key}"]', f"{message}; it stays") for key, message in expanded.errors.items()
    ]
    losses = [*annotation_losses, *_losses_on_reading(expanded.obj), *_losses_between(stored, returned, to)]
    return Converted(target, tuple(losses))


def _stored_form(autoscaler: Object, api_version: str) -> Object:
    """The stored form of an object in `api_version`: v2 with its defaults, in canonical form."""
    version = VERSIONS[api_version]
    stored = semantics.copied(autoscaler)
    version.default(stored)
    return canonical.canonical(hpa.complete(version.to_storage(stored)), hpa.RESOURCE.versions[0].message)


def _has_status(autoscaler: Object) -> bool:
    """Whether there is a status, in its field or in annotations of the object's version."""
    if autoscaler.get("status"):
        return True
    annotations = _ANNOTATIONS_READ[autoscaler["apiVersion"]] & _STATUS_ANNOTATIONS
    return any(
        hpa_annotations.find_value(autoscaler, key)
        for key in annotations
        if key in hpa_annotations.annotations_of(autoscaler)
    )


def _losses_on_reading(autoscaler: Object) -> Iterator[Loss]:
    """Yields the losses between the given object and its stored form."""
    api_version = autoscaler["apiVersion"]
    annotations = hpa_annotations.annotations_of(autoscaler)
    for key in sorted(hpa_annotations.RESERVED & set(annotations)):
        field = f'metadata.annotations["{key}"]'
        if key not in _ANNOTATIONS_READ[api_version]:
            yield Loss(field, f"reserved for conversions, and not read in {api_version}")
        elif key in hpa_annotations.MESSAGES and hpa_annotations.find_value(autoscaler, key) is None:
            yield Loss(field, "cannot be read, so it counts as not there")
    if api_version == hpa_extensions_v1beta1.API_VERSION:
        yield from _reference_losses(autoscaler)


def _reference_losses(autoscaler: Object) -> Iterator[Loss]:
    """Yields the parts of `spec.scaleRef` of extensions/v1beta1 that no other version has."""
    scale_ref = (autoscaler.get("spec") or {}).get("scaleRef") or {}
    namespace, subresource = scale_ref.get("namespace", ""), scale_ref.get("subresource", "")
    if namespace and namespace != (autoscaler.get("metadata") or {}).get("namespace"):
        yield Loss("spec.scaleRef.namespace", "an autoscaler scales what is in its own namespace")
    if subresource not in ("", hpa_extensions_v1beta1.SUBRESOURCE):
        yield Loss("spec.scaleRef.subresource", f"it is always {hpa_extensions_v1beta1.SUBRESOURCE}")


def _losses_between(old_form: Object, new_form: Object, api_version: str) -> list[Loss]:
    """The losses between two stored forms; `new_form` is `old_form` converted to `api_version` and back."""
    losses: list[Loss] = []
    for section, list_field in _METRIC_LISTS:
        old_fields, new_fields = {**old_form.get(section, {})}, {**new_form.get(section, {})}
        metrics = old_fields.pop(list_field, None) or []
        returned_metrics = new_fields.pop(list_field, None) or []
        losses += _metric_losses(metrics, returned_metrics, f"{section}.{list_field}", api_version)
        losses += _value_losses(old_fields, new_fields, section, api_version)
    return losses


def _metric_losses(old: list[Object], new: list[Object], path: str, api_version: str) -> Iterator[Loss]:
    """Yields the losses in a list of metrics: whole metrics, fields of metrics, their order."""
    new_positions = _match_metrics(old, new)
    for index, new_position in enumerate(new_positions):
        if new_position is None:
            yield Loss(f"{path}[{index}]", f"{api_version} has no place for it")
        else:
            yield from _value_losses(old[index], new[new_position], f"{path}[{index}]", api_version)
    indexes_by_position = {position: index for index, position in enumerate(new_positions) if position is not None}
    old_indexes = [indexes_by_position[position] for position in sorted(indexes_by_position)]  # in the new order
    if old_indexes != sorted(old_indexes):
        yield Loss(path, f"the order: what was {', '.join(f'[{index}]' for index in old_indexes)} now stands so")


def _match_metrics(old: list[Object], new: list[Object]) -> list[int | None]:
    """The position of each old metric in `new`, None for a lost one.

    A metric is matched with one of equal content; the rest by equal type, the first of a type with the first. Of
    [cpu 50%, qps 10] and [qps 10, cpu 60%] the positions are [1, 0].
    """
    new_positions: list[int | None] = [None] * len(old)
    unmatched = set(range(len(new)))
    for metric_key in (_value_text, _metric_type):
        candidates: dict[str, list[int]] = defaultdict(list)
        for position in sorted(unmatched, reverse=True):  # so that `pop` returns the first one
            candidates[metric_key(new[position])].append(position)
        for index, metric in enumerate(old):
            if new_positions[index] is None and (positions_of_key := candidates[metric_key(metric)]):
                new_positions[index] = positions_of_key.pop()
        unmatched -= {position for position in new_positions if position is not None}
    return new_positions


def _metric_type(metric: Object) -> str:
    return str(metric.get("type", ""))


def _value_losses(old: Any, new: Any, path: str, api_version: str) -> Iterator[Loss]:
    """Yields the losses of everything in `old` that is missing or different in `new`.

    Args:
        old: a JSON value before the conversion to `api_version` and back.
        new: the value after it; None if it is missing.
        path: the path of the value.
        api_version: the version, for the reason.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            yield from _value_losses(value, new.get(key), f"{path}.{key}", api_version)
    elif isinstance(old, list) and isinstance(new, list):
        for index, value in enumerate(old):
            yield from _value_losses(value, new[index] if index < len(new) else None, f"{path}[{index}]", api_version)
    elif new is None:
        if old is not None:
            yield Loss(path, f"{api_version} has no place for it")
    elif old != new:
        yield Loss(path, f"{_value_text(old)} becomes {_value_text(new)}")


def _value_text(value: Any) -> str:
    return json_text.encode(value).decode()
