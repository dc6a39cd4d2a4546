"""Handles PATCH requests of objects and their status: JSON patch, merge patch, strategic merge patch, apply.

`dispatch` calls `patch`; `scales` patches Scales with `Patcher`. A patch applies to the newest object in the version of
the path, inside the store's read-modify-write: a client gets a conflict only if its patch names a resourceVersion. The
result is decoded, defaulted and converted to the storage version like any body.

A new type of patch: a `PatchType`, a line in `TYPE_BY_MEDIA_TYPE`, and a case in `Patch.apply_to` and `parse_patch`.

Source: the API server's patch handler and its errors (golden update-hpa.jsonl).
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from podscaler.api.machinery import field as fields
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object, Version
from podscaler.api.schema import decoding, unstructured
from podscaler.api.text import json_text
from podscaler.api.text.json_text import DecodeError, Repeated
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.handlers import (
    json_patch,
    server_side_apply,
    strategic_lists,
    strategic_merge,
    writes,
)
from podscaler.controlplane.apiserver.handlers.strategic_merge import MessageSchema
from podscaler.controlplane.apiserver.http import (
    http_errors,
    name_checks,
    object_responses,
    query_options,
    request_bodies,
)
from podscaler.controlplane.apiserver.http.negotiation import media_type
from podscaler.controlplane.apiserver.http.query_options import FieldValidation
from podscaler.controlplane.apiserver.http.request_bodies import BodyKind, Kinds
from podscaler.controlplane.apiserver.http.resource_request import ResourceRequest, ServerContext
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.registry import object_preparation
from podscaler.controlplane.storage.options import UpdateOptions

PatchType = Literal["json", "merge", "strategic"]

TYPE_BY_MEDIA_TYPE: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
"""The type of patch by Content-Type; server-side apply has a module of its own, `server_side_apply`."""

_MAP_TYPE = "map[string]interface {}"
"""The Go type of an object in kube-apiserver's messages."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A parsed patch document.

    Attributes:
        type: which kind of patch.
        document: for `json` a list of operations, else an object.
        problems: duplicate and unknown fields, which are errors under `fieldValidation=Strict`.
    """

    type: PatchType
    document: Any
    problems: tuple[str, ...] = ()

    def apply_to(self, obj: Object, type_name: str) -> Object:
        """A patched copy of `obj`; `type_name` is its type in the schema.

        Raises StatusError 400, 413, 422, 500.
        """
        match self.type:
            case "json":
                patched: Object = json_patch.apply_patch(obj, self.document)
            case "merge":
                patched = json_patch.apply_merge_patch(obj, self.document)
            case "strategic":
                patched = strategic_merge.apply_strategic_merge(obj, self.document, MessageSchema(type_name))
        return patched

    def value_in_errors(self, patched: Object, original: Object, type_name: str) -> str:
        """The value in error messages about the result: `patched`, or for strategic merge the rest of the patch.

        `original`, the object before the patch, is read for strategic merge only; `type_name` is as in `apply_to`.
        """
        if self.type == "strategic":
            remaining_patch = strategic_merge.patch_in_errors(original, self.document, MessageSchema(type_name))
            return strategic_lists.go_text(remaining_patch)
        return json_text.literal_text(patched)


@dataclass(frozen=True, slots=True)
class Patcher:
    """Applies a patch to an object in one API version and decodes the result.

    Attributes:
        patch: the patch.
        expected: the kind and version of the object.
        kinds: every kind that a body may have, as a patch may change kind and apiVersion.
        validation: whether unknown and duplicate fields are errors, warnings or ignored.
        warnings: gets the warnings about the patch.
    """

    patch: Patch
    expected: BodyKind
    kinds: Kinds
    validation: FieldValidation
    warnings: list[str]

    def patch_and_decode(self, obj: Object) -> tuple[Object, BodyKind]:
        """`obj` (in the expected version) patched and decoded, and the kind and version that it has now.

        Raises StatusError 400, 413, 422, 500.
        """
        patched = self.patch.apply_to(obj, self.expected.message)
        if not isinstance(patched, dict):  # a JSON patch may put a list in the object's place
            raise self._invalid_result_error(patched, _no_object_text(patched), obj)
        kind = self._patched_kind(patched)
        try:
            if self.patch.type == "strategic":
                patched = unstructured.restore(patched, self.expected.message)
            decoded = kind.decode(patched)
        except DecodeError as error:
            raise self._invalid_result_error(patched, str(error), obj) from None
        # upstream decodes the result of a strategic merge by a converter that sorts them
        decoding_problems = sorted(decoded.problems) if self.patch.type == "strategic" else decoded.problems
        problems = (*self.patch.problems, *decoding_problems)
        if problems and self.validation == "Strict":
            raise self._invalid_result_error(patched, http_errors.strict_decoding_text(problems), obj)
        if self.validation == "Warn":
            self.warnings.extend(request_bodies.warning_texts(problems))
        return request_bodies.with_type_meta(decoded, kind), kind

    def _patched_kind(self, patched: Object) -> BodyKind:
        """The kind and version to decode the patched object as. Raises StatusError 422 if they are not served."""
        if self.expected.custom_decoder is not None:
            api_version, kind = (str(patched.get(key) or "") for key in ("apiVersion", "kind"))
            return replace(self.expected, api_version=api_version, kind=kind)
        if self.patch.type == "strategic":  # kube-apiserver decodes it as the object's type, whatever kind it has
            return self.expected
        kind_name = patched.get("kind") or self.expected.kind
        api_version = patched.get("apiVersion") or self.expected.api_version
        if str(api_version).count("/") > 1:
            raise self._invalid_result_error(patched, f"unexpected GroupVersion string: {api_version}")
        registered = self.kinds.get((str(api_version), str(kind_name)))
        if registered is not None and registered.kind != self.expected.kind:
            raise self._invalid_result_error(patched, request_bodies.unknown_conversion_text(registered, self.expected))
        if registered is None:
            message = f'no kind "{kind_name}" is registered for version "{api_version}" {request_bodies.GO_SCHEME}'
            raise self._invalid_result_error(patched, message)
        return registered

    def _invalid_result_error(self, patched: Object, message: str, original: Object | None = None) -> StatusError:
        """The error 422 of a result that cannot be decoded; `original` is the unpatched object (strategic merge)."""
        value_in_errors = self.patch.value_in_errors(patched, original or {}, self.expected.message)
        return fields.invalid_object(
            group="", kind="", name="", errors=[fields.invalid("patch", value_in_errors, message)]
        )


def _no_object_text(patched: Any) -> str:
    """The decoder's message for a document that is no object."""
    try:
        decoding.read_type_meta(patched)
    except DecodeError as error:
        return str(error)
    raise AssertionError("only objects have a kind and apiVersion")


async def patch(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """Patch an object or its status. Raises StatusError 400, 403, 404, 406, 408, 409, 413, 415, 422, 500."""
    path = request.path
    name_checks.check_path_name(path.name)
    if media_type(request.content_type) == server_side_apply.APPLY_TYPE:
        return await _respond_to_apply(server, request)
    options = query_options.patch_options(request.query, applies=False)
    parsed = await receive_patch(request)
    patcher = Patcher(parsed, request.kind, server.kinds, options.field_validation, request.warnings)
    unpatched: Object = {}

    def change(stored: Object) -> Object:
        nonlocal unpatched
        unpatched = dict(stored)  # of the last attempt: a write that is in conflict with another one is repeated
        obj, kind = patcher.patch_and_decode(request.served.version.from_storage(stored))
        name_checks.check_name(obj, path.name)
        object_preparation.set_namespace(obj, path.namespace)
        writes.remove_duplicate_owners(obj, request.warnings, is_patched=True)
        return writes.to_storage(_served_version(request, kind), obj)

    update = UpdateOptions(path.subresource, dry_run=options.dry_run, author=request.author(options))
    entry = await server.objects.update(request.resource_key, path.namespace, path.name, change, options=update)
    request.warn(entry, unpatched)
    return await object_responses.object_response(server, request, entry)


async def _respond_to_apply(server: ServerContext, request: ResourceRequest) -> EncodedResponse:
    """The response to server-side apply, which creates the object if it does not exist. Raises as `patch`."""
    path, version = request.path, request.served.version
    managers, resource = server.objects.field_managers, request.served.resource
    target = server_side_apply.object_target(server, request)
    apply_request = await server_side_apply.receive(request, target, server.clock.now_ns())
    unpatched: Object = {}

    def change(stored: Object) -> Object:  # `stored` is empty for an object that does not exist
        nonlocal unpatched
        unpatched = dict(stored)
        live = managers.stored_object(resource, stored, request.served.api_version) if stored else None
        entries = stored["metadata"].get("managedFields") or [] if stored else []
        obj = apply_request.merge_into(live, entries, request.warnings)
        if not stored:
            _check_created_by_apply(server, request, obj)
        name_checks.check_name(obj, path.name)
        object_preparation.set_namespace(obj, path.namespace)
        writes.remove_duplicate_owners(obj, request.warnings, is_patched=True)
        return writes.to_storage(version, obj)

    update = UpdateOptions(path.subresource, dry_run=apply_request.options.dry_run, author=None)
    entry, is_new = await server.objects.apply(request.resource_key, path.namespace, path.name, change, options=update)
    request.warn(entry, unpatched or None)
    return await object_responses.object_response(server, request, entry, status=201 if is_new else 200)


def _check_created_by_apply(server: ServerContext, request: ResourceRequest, obj: Object) -> None:
    """Check an apply that creates the object, and remove the resourceVersion of `obj`.

    Raises StatusError 403 for a user who may not create, 409 for a configuration with a uid.
    """
    request.check_may_create(server.authorizer)
    uid = obj["metadata"].get("uid", "")
    if uid:
        message = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise api_errors.conflict(request.served.resource, request.path.name, message)
    obj["metadata"].pop("resourceVersion", None)


def _served_version(request: ResourceRequest, kind: BodyKind) -> Version:
    """The version of a patched object: the path's, unless the patch changes the apiVersion (of a built-in kind)."""
    versions = request.served.resource.versions
    return next((version for version in versions if version.message == kind.message), request.served.version)


async def receive_patch(request: ResourceRequest) -> Patch:
    """The request's body as a patch. Raises StatusError 400, 408, 413, 415."""
    patch_type = TYPE_BY_MEDIA_TYPE.get(media_type(request.content_type))
    if request.served.resource.is_custom and patch_type in (None, "strategic"):
        raise http_errors.unsupported_custom_patch()
    if patch_type is None:
        raise http_errors.unsupported_patch()
    return parse_patch(await request_bodies.read(request.http), patch_type)


def parse_patch(body: bytes, patch_type: PatchType) -> Patch:
    """The patch of a body. Raises StatusError 400 for an invalid patch of that type."""
    try:
        document = json_text.parse(body)
    except DecodeError:
        raise http_errors.bad_request("invalid JSON patch") from None
    problems = tuple(f'duplicate field "{field_path}"' for field_path in _duplicate_paths(document, ""))
    if patch_type == "json":
        operations = json_patch.parse(document)
        problems = (*problems, *json_patch.unknown_fields(operations))
        return Patch(patch_type, json_text.plain_where_finite(operations), problems)
    if document is None and patch_type == "strategic":
        return Patch(patch_type, {})
    if not isinstance(document, dict):
        raise _no_object_error(document, patch_type)
    try:
        plain_document = json_text.plain(document)
    except DecodeError as error:
        message = f"error decoding patch: {error}" if patch_type == "merge" else str(error)
        raise http_errors.bad_request(message) from None
    # a merge patch keeps numbers as the client wrote them, for the errors of the result's decoder
    return Patch(patch_type, plain_document if patch_type == "strategic" else document, problems)


def _no_object_error(document: Any, patch_type: PatchType) -> StatusError:
    """The error 400 for a merge patch that is no JSON object."""
    if document is None:
        return http_errors.bad_request("Invalid JSON Patch")
    message = f"json: cannot unmarshal {json_patch.json_type(document)} into Go value of type {_MAP_TYPE}"
    return http_errors.bad_request(f"error decoding patch: {message}" if patch_type == "merge" else message)


def _duplicate_paths(value: Any, field_path: str) -> list[str]:
    """The field paths (`spec.ports[0].name`) of duplicate members of `value`, in the order of the JSON text."""
    if isinstance(value, list):
        return [
            duplicate
            for index, element in enumerate(value)
            for duplicate in _duplicate_paths(element, f"{field_path}[{index}]")
        ]
    if not isinstance(value, dict):
        return []
    members = value.pairs if isinstance(value, Repeated) else value.items()
    names_before: set[str] = set()
    duplicates: list[str] = []
    for name, member in members:
        member_path = f"{field_path}.{name}" if field_path else name
        if name in names_before:
            duplicates.append(member_path)
        names_before.add(name)
        duplicates += _duplicate_paths(member, member_path)
    return list(dict.fromkeys(duplicates))
