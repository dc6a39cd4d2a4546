"""Implements server-side apply requests (`kubectl apply --server-side`) of objects, their status and their scale.

`patching` and `scales` call it for bodies of type `application/apply-patch+yaml`. A body is a configuration: the fields
that its manager wants to own. `ApplyRequest.merge_into` merges it (`api.managed_fields`) into the stored object, inside
the store's read-modify-write and in the version of the path; the caller defaults and stores the result. A new kind of
target: an `ApplyTarget`.

Source: kube-apiserver's apply patcher; golden update-hpa.jsonl, scale.jsonl.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from podscaler.api.managed_fields import managed_kinds
from podscaler.api.managed_fields.applying import ConfigurationError
from podscaler.api.managed_fields.managed_kinds import Application, ManagedKind
from podscaler.api.managed_fields.updating import ConversionError
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.api.schema import unstructured
from podscaler.api.schema.decoding import Decoded
from podscaler.api.text import json_text, yaml_text
from podscaler.api.text.json_text import DecodeError, Repeated
from podscaler.base.clock import rfc3339
from podscaler.controlplane.apiserver.handlers import json_patch
from podscaler.controlplane.apiserver.http import http_errors, query_options, request_bodies
from podscaler.controlplane.apiserver.http.query_options import WriteOptions
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.storage.options import Author

APPLY_TYPE = "application/apply-patch+yaml"
_MAP_TYPE = "map[string]interface {}"
"""The Go type of an object in kube-apiserver's messages."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A parsed configuration, and the decoder's message about duplicate fields (empty if there are none)."""

    obj: Object
    duplicates: str = ""


@dataclass(frozen=True, slots=True)
class ApplyTarget:
    """The kind of object to which a configuration is applied.

    Attributes:
        expected: the kind, in the version of the path.
        managed_kind: how the ownership of its fields is tracked.
        decode: decodes a merged object. Raises DecodeError.
    """

    expected: BodyKind
    managed_kind: ManagedKind
    decode: Callable[[Object], Decoded]


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """One apply request.

    Attributes:
        configuration: the body.
        target: the kind of the object.
        author: the field manager.
        options: the query parameters; `force` takes over fields of other managers.
        now_ns: the wall clock, for the time of the managedFields entry.
    """

    configuration: Configuration
    target: ApplyTarget
    author: Author
    options: WriteOptions
    now_ns: int

    def merge_into(self, stored: Object | None, entries: Sequence[Any], warnings: list[str]) -> Object:
        """The merged object in the version of the path, decoded, with its managedFields.

        Args:
            stored: the stored object in that version; None if it is created.
            entries: its managedFields, empty if it is created.
            warnings: gets the warnings about the configuration.

        Raises StatusError 400, 409, 500.
        """
        self._check_configuration()
        config = self.configuration.obj
        now, force = rfc3339(self.now_ns), bool(self.options.force)
        application = Application(config, self.author.manager, self.target.expected.api_version, now, force)
        try:
            merged = managed_kinds.apply(self.target.managed_kind, stored, entries, application)
        except ConfigurationError as error:
            raise api_errors.error_without_reason(
                f"failed to create typed patch object ({_object_text(config)}): {error}"
            ) from None
        except ConversionError as error:
            raise api_errors.error_without_reason(str(error)) from None
        self._check_duplicates(warnings)  # after merging, as upstream: its errors come first
        return self._decode_merged(merged)

    def _check_configuration(self) -> None:
        """Check that the configuration is of the kind of the path and has no managedFields. Raises StatusError 400."""
        config, expected = self.configuration.obj, self.target.expected
        if (config.get("apiVersion"), config.get("kind")) != (expected.api_version, expected.kind):
            raise http_errors.bad_request(f"invalid object type: {_type_text(config)}")
        metadata = config.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("managedFields"), list):
            raise http_errors.bad_request("metadata.managedFields must be nil")

    def _check_duplicates(self, warnings: list[str]) -> None:
        """Append a warning about duplicate fields (`fieldValidation=Warn`). Raises StatusError 400 (`Strict`)."""
        duplicates, validation = self.configuration.duplicates, self.options.field_validation
        if duplicates and validation == "Strict":
            raise http_errors.bad_request(f"error strict decoding patch: error converting YAML to JSON: {duplicates}")
        if duplicates and validation == "Warn":
            warnings.extend(request_bodies.warning_texts((duplicates,)))

    def _conversion_message(self, decoder_message: str) -> str:
        """kube-apiserver's message for a merged object that does not fit its kind."""
        config = self.configuration.obj
        return (
            f"failed to convert new object ({_object_text(config)}) to proper version: "
            f"unable to convert unstructured object to {_type_text(config)}: {decoder_message}"
        )

    def _decode_merged(self, merged: Object) -> Object:
        """The merged object as its kind decodes it. Raises StatusError 500 if it does not fit the kind."""
        metadata = dict(merged["metadata"])
        entries = metadata.pop("managedFields")
        try:
            decoded = self.target.decode({**merged, "metadata": metadata})
        except DecodeError as error:
            raise api_errors.error_without_reason(self._conversion_message(str(error))) from None
        obj = request_bodies.with_type_meta(decoded, self.target.expected)
        obj.setdefault("metadata", {})["managedFields"] = entries
        return obj


async def receive(request: ResourceRequest, target: ApplyTarget, now_ns: int) -> ApplyRequest:
    """Read an apply request. Raises StatusError 400, 408, 413, 422."""
    options = query_options.patch_options(request.query, applies=True)
    configuration = _parse_configuration(await request_bodies.read(request.http))
    return ApplyRequest(configuration, target, request.author(options), options, now_ns)


def object_target(server: ServerContext, request: ResourceRequest) -> ApplyTarget:
    """The target for an object or its status."""
    version = request.served.version
    managed_kind = server.objects.field_managers.kind(request.served.resource, request.path.subresource)
    decode = version.decode or partial(unstructured.decode, message=version.message)
    return ApplyTarget(request.kind, managed_kind, decode)


def _parse_configuration(body: bytes) -> Configuration:
    """The configuration of a body. Raises StatusError 400 for a body that is no object."""
    config = _parse_json(body) if body[:1] == b"{" else None  # JSON is YAML, too, but its own parser is faster
    return _parse_yaml(body) if config is None else Configuration(config)


def _parse_json(body: bytes) -> Object | None:
    """The object of a JSON text, None if the YAML parser has to report an error or duplicate fields."""
    try:
        document = json_text.parse(body)
        if not isinstance(document, dict) or _has_repeated(document):
            return None
        config: Object = json_text.plain(document)
    except DecodeError:
        return None
    return config


def _parse_yaml(body: bytes) -> Configuration:
    """The configuration of a body. Raises StatusError 400 with upstream's message."""
    try:
        document = yaml_text.parse(body)
    except DecodeError as error:
        message = f"error encoding patch: {error}"
        if body.lstrip().startswith(b"{"):  # kube-apiserver takes it for JSON, and fails in a later step
            message = f"error decoding patch: error converting YAML to JSON: {error}"
        raise http_errors.bad_request(message) from None
    if document.value is not None and not isinstance(document.value, dict):
        json_type = json_patch.json_type(document.value)
        problem = f"json: cannot unmarshal {json_type} into Go value of type {_MAP_TYPE}"
        raise http_errors.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {problem}")
    return Configuration(document.value or {}, document.duplicates_text() if document.duplicates else "")


def _has_repeated(value: Any) -> bool:
    """Whether an object in a parsed JSON value, at any depth, has a duplicate member."""
    if isinstance(value, list):
        return any(map(_has_repeated, value))
    return isinstance(value, dict) and (isinstance(value, Repeated) or any(map(_has_repeated, value.values())))


def _type_text(config: Object) -> str:
    """The kind of a configuration as Go prints it: `autoscaling/v1, Kind=HorizontalPodAutoscaler`."""
    api_version = str(config.get("apiVersion") or "")
    version = api_version if "/" in api_version else f"/{api_version}"
    return f"{version}, Kind={config.get('kind') or ''}"


def _object_text(config: Object) -> str:
    """Namespace, name and kind of a configuration in messages; `/; /, Kind=` if it has none."""
    metadata = config.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else ""
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    namespace_text = namespace if isinstance(namespace, str) else ""
    name_text = name if isinstance(name, str) else ""
    return f"{namespace_text}/{name_text}; {_type_text(config)}"
