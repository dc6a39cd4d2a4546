"""Splits scenario files and manifests into documents with places, and decodes Kubernetes objects as an API server does.

Called by `scenario_file` and `scenario_parts` (for edits of autoscalers).

Source: docs/spec/api.md 2 (Validation), 6 (Older versions).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from podscaler.api.kinds import manifest_objects
from podscaler.api.kinds.autoscaling import conversion
from podscaler.api.resource.resources import Object, Resource, Version
from podscaler.api.schema import decoding
from podscaler.api.text import json_text, manifests
from podscaler.api.text.field_lines import FieldLines
from podscaler.api.text.json_text import DecodeError
from podscaler.api.typed import autoscaling
from podscaler.base.errors import UsageError
from podscaler.core.model import spec
from podscaler.core.model.settings import Settings
from podscaler.core.model.spec import Spec
from podscaler.simulation.files.file_fields import FileDocument, FileField

API_VERSION = "podscaler.dev/v1alpha1"
KIND = "Scenario"
NAMESPACE = "default"
_CUSTOM_AUTOSCALER = "PodAutoscaler"


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """An object as an API server would store it; an autoscaler in autoscaling/v2.

    Attributes:
        field: the object as it is written, for messages.
    """

    kind: str
    namespace: str
    name: str
    obj: Object
    field: FileField

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


def read_file(path: Path) -> list[FileField]:
    """The documents of a file of YAML or JSON. Raises UsageError."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    return list(_documents(content, str(path)))


def _documents(content: bytes, file: str) -> Iterator[FileField]:
    """The documents of a file, each with the line at which it begins. Raises UsageError."""
    line = 1
    for number, text in enumerate(manifests.split_parts(content), 1):
        try:
            document = manifests.parse_part(number, text, manifests.format_of(content))
        except UsageError as error:
            raise UsageError(f"{file}:{line}: {error}") from None
        if document.repeated:
            raise UsageError(f"{file}:{line}: document {number}: {' '.join(document.repeated.split())}")
        if document.number:
            value = json_text.plain(document.value)
            yield FileField(value, "", FileDocument(file, FieldLines(text, line)))
        line += text.count(b"\n")


def is_scenario(field: FileField) -> bool:
    """Whether a document is a scenario. Raises UsageError for a version that is not known."""
    value = field.value
    if not isinstance(value, dict) or value.get("kind") != KIND:
        return False
    if value.get("apiVersion") != API_VERSION:
        raise field.error(f"apiVersion of a {KIND} is {value.get('apiVersion')!r}, not {API_VERSION}")
    return True


def objects(field: FileField) -> Iterator[ManifestObject]:
    """The objects of a document, with the items of lists one by one; kinds that no simulation uses are left out.

    Raises UsageError for what an API server would reject.
    """
    value = field.value
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str) or "apiVersion" not in value:
        raise field.error("this is neither a scenario nor a Kubernetes object: kind and apiVersion are needed")
    if value["kind"] == "List" and isinstance(value.get("items"), list):
        for element in field.child("items").elements():
            yield from objects(element)
        return
    record = manifest_objects.find_record(str(value["apiVersion"]), value["kind"])
    if value["kind"] == _CUSTOM_AUTOSCALER:
        raise field.error("a PodAutoscaler is simulated as a HorizontalPodAutoscaler; write it as one")
    if record is not None:
        yield _decoded(field, value, *record)
    elif value["kind"] == conversion.KIND:
        versions = ", ".join(conversion.VERSIONS)
        raise field.error(f"unknown version {value['apiVersion']} of {conversion.KIND}; known versions: {versions}")


def _decoded(field: FileField, value: Any, resource: Resource, version: Version) -> ManifestObject:
    """The object of a manifest as an API server would store it. Raises UsageError with its place."""
    try:
        decoded = decoding.decode_value(value, version.message)
        obj = _stored(decoded.obj, resource, version)
    except DecodeError as error:
        raise field.error(str(error)) from None
    if decoded.problems:
        raise field.error(decoded.problems[0])
    for fault in manifest_objects.api_errors(resource, obj):
        raise FileField(None, _joined_path(field.path, fault.field), field.document).error(fault.text)
    meta = obj.get("metadata") or {}
    return ManifestObject(resource.kind, meta.get("namespace") or NAMESPACE, meta.get("name") or "", obj, field)


def _stored(decoded: Object, resource: Resource, version: Version) -> Object:
    """The stored form. Raises DecodeError for an autoscaler whose annotations state what cannot be read."""
    if resource.kind != conversion.KIND:
        return manifest_objects.with_defaults(decoded, resource, version)
    converted = conversion.convert(decoded, conversion.STORED)
    if converted.losses:
        raise DecodeError(str(converted.losses[0]))
    return converted.obj


def _joined_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def wire_spec(manifest: ManifestObject) -> autoscaling.HorizontalPodAutoscalerSpec:
    """The spec of an autoscaler in the API's form. Raises UsageError."""
    try:
        return msgspec.convert(manifest.obj["spec"], autoscaling.HorizontalPodAutoscalerSpec)
    except ValueError as error:
        raise manifest.field.error(f"the autoscaler cannot be evaluated: {error}") from None


def parse_spec(manifest: ManifestObject, settings: Settings) -> Spec:
    """The parsed spec of an autoscaler. Raises UsageError."""
    wire = wire_spec(manifest)
    try:
        annotations = (manifest.obj.get("metadata") or {}).get("annotations") or spec.NO_ANNOTATIONS
        return spec.parse(manifest.namespace, manifest.name, wire, settings.emulation, annotations=annotations)
    except ValueError as error:
        raise manifest.field.error(f"the autoscaler cannot be evaluated: {error}") from None
