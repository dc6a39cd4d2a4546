"""Supports the migration of `kubectl apply` from client-side to server-side apply.

Called by `managed_kinds` when a manager named `kubectl` applies. Client-side `kubectl apply` stored its last
configuration in an annotation. Fields of that configuration that nobody changed since cause no conflict; the annotation
is set to the new configuration.

Source: apimachinery's lastAppliedManager and lastAppliedUpdater.
"""

from typing import Any

import msgspec

from podscaler.api.managed_fields import comparing, extracting, field_sets, type_checking
from podscaler.api.managed_fields.field_sets import FieldSet
from podscaler.api.managed_fields.field_types import FieldType

Object = dict[str, Any]

MANAGER = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATIONS_MAX_BYTES = 256 * 1024


def unchanged_fields(live_object: Object, version: str, field_type: FieldType) -> FieldSet:
    """The fields that client-side apply wrote and that are unchanged since; empty without a valid annotation.

    Args:
        live_object: the stored object in `version`.
        version: the apiVersion of the configuration that is applied now; an annotation in another one is ignored.
        field_type: the type of objects in `version`.
    """
    config = _last_configuration(live_object)
    if config is None or config.get("apiVersion") != version or type_checking.errors(config, field_type):
        return {}
    changes = comparing.compare(config, live_object, field_type)
    fields = field_sets.difference(extracting.field_set(config, field_type), changes.written)
    return field_sets.difference(fields, changes.removed)


def update_annotation(obj: Object, config: Object) -> None:
    """Set the annotation of `obj`, if it has it, to the configuration; remove it where annotations get too long."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if not annotations.get(ANNOTATION):
        return
    new_annotations = {**annotations, ANNOTATION: _configuration_text(config)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in new_annotations.items()) > ANNOTATIONS_MAX_BYTES:
        del new_annotations[ANNOTATION]
    obj["metadata"] = {**obj["metadata"], "annotations": new_annotations}


def _last_configuration(live_object: Object) -> Object | None:
    """The configuration in kubectl's annotation; None without one, and if it is not a JSON object."""
    config_json = ((live_object.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    if not config_json:
        return None
    try:
        config = msgspec.json.decode(config_json)
    except msgspec.DecodeError:
        return None
    return config if isinstance(config, dict) else None


def _configuration_text(config: Object) -> str:
    """A configuration without its own annotation, as JSON with sorted members and a newline."""
    metadata = dict(config.get("metadata") or {})
    if metadata.get("annotations") is not None:
        other_annotations = {name: value for name, value in metadata["annotations"].items() if name != ANNOTATION}
        metadata["annotations"] = other_annotations
    config_without_annotation = {**config, "metadata": metadata} if "metadata" in config else config
    return msgspec.json.encode(config_without_annotation, order="sorted").decode() + "\n"
