"""The way from client-side to server-side apply, as far as the server walks it for kubectl.

Called by whoever serves apply patches. `kubectl apply` keeps its last configuration in an annotation. Where
`kubectl apply --server-side` (manager `kubectl`) meets conflicts only about fields that this annotation has and that
nobody changed since, they are its own and it may take them; and the annotation follows what is applied.

Source: apimachinery's lastAppliedManager and lastAppliedUpdater.
"""

from typing import Any

import msgspec

from podscaler.api.managed_fields import checking, comparing, extracting, field_sets
from podscaler.api.managed_fields.field_sets import Set
from podscaler.api.managed_fields.types import FieldType

Object = dict[str, Any]

MANAGER = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATIONS_MAX_BYTES = 256 * 1024


def allowed(live: Object, version: str, kind: FieldType) -> Set:
    """The fields that client-side apply wrote and that are still as it wrote them; empty where it does not say.

    Args:
        live: the object in `version`, in the form in which it is stored.
        version: of the configuration that is applied now; one in another version says nothing.
        kind: its type.
    """
    config = _last_configuration(live)
    if config is None or config.get("apiVersion") != version or checking.faults(config, kind):
        return {}
    changes = comparing.compare(config, live, kind)
    fields = field_sets.difference(extracting.field_set(config, kind), changes.written)
    return field_sets.difference(fields, changes.removed)


def follow(obj: Object, config: Object) -> None:
    """Let the annotation of `obj`, if it has one, say what is applied now; one that is too long is dropped."""
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if not annotations.get(ANNOTATION):
        return
    changed = {**annotations, ANNOTATION: _text(config)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in changed.items()) > ANNOTATIONS_MAX_BYTES:
        del changed[ANNOTATION]
    obj["metadata"] = {**obj["metadata"], "annotations": changed}


def _last_configuration(live: Object) -> Object | None:
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    if not text:
        return None
    try:
        config = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return config if isinstance(config, dict) else None


def _text(config: Object) -> str:
    """A configuration without its own annotation, as JSON with sorted members and a newline."""
    metadata = dict(config.get("metadata") or {})
    if metadata.get("annotations") is not None:
        rest = {name: value for name, value in metadata["annotations"].items() if name != ANNOTATION}
        metadata["annotations"] = rest
    whole = {**config, "metadata": metadata} if "metadata" in config else config
    return msgspec.json.encode(whole, order="sorted").decode() + "\n"
