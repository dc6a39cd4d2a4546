"""Splits scenario files and manifests into documents with line numbers, and decodes Kubernetes objects.

Called by `scenario_file`, and by `scenario_parts` for edits of autoscalers. Kinds are those of
`podscaler.api.kinds.manifest_objects`; an object is validated and defaulted as by an API server.

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
"""The namespace of objects that state none."""
_CUSTOM_AUTOSCALER = "PodAutoscaler"


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """An object as an API server would store it; an autoscaler in autoscaling/v2.

    Attributes:
        field: the object as the file states it, for messages.
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
    """The documents of a file of YAML or JSON. Raises UsageError if it cannot be read or parsed."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    return list(_documents(content, str(path)))


def _documents(content: bytes, file: str) -> Iterator[FileField]:
    """The documents of a file that are not empty, with their lines. Raises UsageError, also for a repeated key."""
    first_line = 1
    for document_number, document_text in enumerate(manifests.split_parts(content), 1):
        try:
            document = manifests.parse_part(document_number, document_text, manifests.format_of(content))
        except UsageError as error:
            raise UsageError(f"{file}:{first_line}: {error}") from None
        if document.repeated:
            raise UsageError(f"{file}:{first_line}: document {document_number}: {' '.join(document.repeated.split())}")
        if document.number:
            plain_value = json_text.plain(document.value)
            yield FileField(plain_value, "", FileDocument(file, FieldLines(document_text, first_line)))
        first_line += document_text.count(b"\n")


def is_scenario(field: FileField) -> bool:
    """Whether a document is a scenario. Raises UsageError for a version that is not known."""
    scenario_object = field.value
    if not isinstance(scenario_object, dict) or scenario_object.get("kind") != KIND:
        return False
    if scenario_object.get("apiVersion") != API_VERSION:
        raise field.error(f"apiVersion of a {KIND} is {scenario_object.get('apiVersion')!r}, not {API_VERSION}")
    return True


def objects(field: FileField) -> Iterator[ManifestObject]:
    """The objects of a document, with the items of lists one by one; kinds that no simulation uses are left out.

    Raises UsageError for what an API server would reject.
    """
    manifest_object = field.value
    if (
        not isinstance(manifest_object, dict)
        or not isinstance(manifest_object.get("kind"), str)
        or "apiVersion" not in manifest_object
    ):
        raise field.error("this is neither a scenario nor a Kubernetes object: kind and apiVersion are needed")
    if manifest_object["kind"] == "List" and isinstance(manifest_object.get("items"), list):
        for element in field.child("items").elements():
            yield from objects(element)
        return
    record = manifest_objects.find_record(str(manifest_object["apiVersion"]), manifest_object["kind"])
    if manifest_object["kind"] == _CUSTOM_AUTOSCALER:
        raise field.error("a PodAutoscaler is simulated as a HorizontalPodAutoscaler; write it as one")
    if record is not None:
        yield _decode_object(field, manifest_object, *record)
    elif manifest_object["kind"] == conversion.KIND:
        versions = ", ".join(conversion.VERSIONS)
        raise field.error(
            f"unknown version {manifest_object['apiVersion']} of {conversion.KIND}; known versions: {versions}"
        )


def _decode_object(field: FileField, manifest_object: Any, resource: Resource, version: Version) -> ManifestObject:
    """The object of a manifest as an API server would store it. Raises UsageError with file and line."""
    try:
        decoded = decoding.decode_value(manifest_object, version.message)
        obj = _with_stored_defaults(decoded.obj, resource, version)
    except DecodeError as error:
        raise field.error(str(error)) from None
    if decoded.problems:
        raise field.error(decoded.problems[0])
    for fault in manifest_objects.api_errors(resource, obj):
        raise FileField(None, _joined_path(field.path, fault.field), field.document).error(fault.text)
    meta = obj.get("metadata") or {}
    return ManifestObject(resource.kind, meta.get("namespace") or NAMESPACE, meta.get("name") or "", obj, field)


def _with_stored_defaults(decoded: Object, resource: Resource, version: Version) -> Object:
    """The stored form. Raises DecodeError for an autoscaler whose annotations state what cannot be read."""
    if resource.kind != conversion.KIND:
        return manifest_objects.with_defaults(decoded, resource, version)
    converted = conversion.convert(decoded, conversion.STORED_API_VERSION)
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
    """The spec of an autoscaler as the decision core uses it. Raises UsageError."""
    wire = wire_spec(manifest)
    try:
        annotations = (manifest.obj.get("metadata") or {}).get("annotations") or spec.NO_ANNOTATIONS
        return spec.parse(manifest.namespace, manifest.name, wire, settings.emulation, annotations=annotations)
    except ValueError as error:
        raise manifest.field.error(f"the autoscaler cannot be evaluated: {error}") from None
