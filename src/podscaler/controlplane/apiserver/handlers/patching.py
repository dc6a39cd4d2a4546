"""PATCH of objects, their status and their scale.

Called by `dispatch`. A patch applies to the newest object in the version of the path, inside the store's
read-change-write: a client sees a conflict only if its patch names a resourceVersion. What comes out is decoded,
defaulted and turned into the storage version like any body.

Source: the API server's patch handler and its refusals (golden update-hpa.jsonl).
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from podscaler.api.machinery import field as fields
from podscaler.api.resource import api_errors as object_refusals
from podscaler.api.resource.resources import Object, Version
from podscaler.api.schema import decoding, restoring
from podscaler.api.text import json_text
from podscaler.api.text.json_text import DecodeError, Repeated
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.handlers import applying, owners, writes
from podscaler.controlplane.apiserver.http import bodies, field_manager, http_errors, names, queries, rendering
from podscaler.controlplane.apiserver.http.bodies import BodyKind, Kinds
from podscaler.controlplane.apiserver.http.negotiation import media_type
from podscaler.controlplane.apiserver.http.queries import FieldValidation
from podscaler.controlplane.apiserver.http.resource_request import Plane, ResourceRequest
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.apiserver.patch import json_patch, merge, strategic, strategic_lists, strategic_rest
from podscaler.controlplane.apiserver.patch.patch_schema import MessageSchema
from podscaler.controlplane.auth.rules import Attributes
from podscaler.controlplane.registry import acting
from podscaler.controlplane.storage.options import UpdateOptions

PatchType = Literal["json", "merge", "strategic"]

TYPES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
"""Server-side apply (`applying.APPLY`) is a fourth, with rules of its own."""

_MAP_TYPE = "map[string]interface {}"


@dataclass(frozen=True, slots=True)
class Patch:
    """A parsed patch document.

    Attributes:
        document: for `json` a list of operations, else an object.
        problems: what a strict server does not like about it.
    """

    type: PatchType
    document: Any
    problems: tuple[str, ...] = ()

    def applied(self, obj: Object, message: str) -> Object:
        """`obj` (left as it is) as the patch changes it.

        Raises:
            StatusError: 413, 422, 500.
        """
        match self.type:
            case "json":
                patched: Object = json_patch.applied(obj, self.document)
            case "merge":
                patched = merge.merged(obj, self.document)
            case "strategic":
                patched = strategic.merged(obj, self.document, MessageSchema(message))
        return patched

    def shown(self, patched: Object, original: Object, message: str) -> str:
        """The value that refusals of the outcome show: what came out, or for strategic merge what is left of it."""
        if self.type == "strategic":
            return strategic_lists.go_text(strategic_rest.rest(original, self.document, MessageSchema(message)))
        return json_text.shown(patched)


@dataclass(frozen=True, slots=True)
class Patching:
    """Applies a patch to an object in one version, inside the store's write; `warnings` gets what it has to say."""

    patch: Patch
    expected: BodyKind
    kinds: Kinds
    validation: FieldValidation
    warnings: list[str]

    def decoded(self, obj: Object) -> tuple[Object, BodyKind]:
        """`obj` (in the expected version) patched and decoded, and the kind that it now says it is.

        Raises:
            StatusError: 413, 422, 500.
        """
        patched = self.patch.applied(obj, self.expected.message)
        if not isinstance(patched, dict):  # a JSON patch may put a list in the object's place
            raise self._refused(patched, _no_type(patched), obj)
        kind = self._kind(patched)
        try:
            if self.patch.type == "strategic":
                patched = restoring.restored(patched, self.expected.message)
            decoded = kind.decoded(patched)
        except DecodeError as error:
            raise self._refused(patched, str(error), obj) from None
        found = sorted(decoded.problems) if self.patch.type == "strategic" else decoded.problems
        problems = (*self.patch.problems, *found)
        if problems and self.validation == "Strict":
            raise self._refused(patched, http_errors.strict(problems), obj)
        if self.validation == "Warn":
            self.warnings.extend(bodies.shown(problems))
        return bodies.typed(decoded, kind), kind

    def _kind(self, patched: Object) -> BodyKind:
        if self.expected.decode is not None:
            api_version, kind = (str(patched.get(key) or "") for key in ("apiVersion", "kind"))
            return replace(self.expected, api_version=api_version, kind=kind)
        if self.patch.type == "strategic":  # upstream puts such a patch into the object's type, whatever it says
            return self.expected
        name = patched.get("kind") or self.expected.kind
        version = patched.get("apiVersion") or self.expected.api_version
        if str(version).count("/") > 1:
            raise self._refused(patched, f"unexpected GroupVersion string: {version}")
        found = self.kinds.get((str(version), str(name)))
        if found is not None and found.kind != self.expected.kind:
            raise self._refused(patched, bodies.conversion(found, self.expected))
        if found is None:
            raise self._refused(patched, f'no kind "{name}" is registered for version "{version}" {bodies.SCHEME}')
        return found

    def _refused(self, patched: Object, text: str, original: Object | None = None) -> StatusError:
        shown = self.patch.shown(patched, original or {}, self.expected.message)
        fault = fields.invalid("patch", shown, text)
        return fields.refusal(group="", kind="", name="", errors=[fault])


def _no_type(patched: Any) -> str:
    """Why a document that is no object does not say what it is."""
    try:
        decoding.read_type_meta(patched)
    except DecodeError as error:
        return str(error)
    raise AssertionError("what is no object says nothing of its type")


async def patch(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    """Patch an object or its status.

    Raises:
        StatusError: 400, 404, 406, 409, 413, 415, 422, 500.
    """
    path = call.path
    names.check_in_path(path.name)
    if media_type(call.content_type) == applying.APPLY:
        return await _apply(plane, call)
    options = queries.patch_options(call.query, applies=False)
    parsed = await receive(call)
    patching = Patching(parsed, call.kind, plane.kinds, options.field_validation, call.warnings)
    before: Object = {}

    def change(stored: Object) -> Object:
        before.update(stored)
        obj, kind = patching.decoded(call.served.version.from_storage(stored))
        names.check_name(obj, path.name)
        names.settle_namespace(obj, path.namespace)
        owners.merge_repeated(obj, call.warnings, is_patched=True)
        return writes.to_storage(_version(call, kind), obj)

    update = UpdateOptions(path.subresource, dry_run=options.dry_run, author=field_manager.of(call, options))
    entry = await plane.objects.update(call.key, path.namespace, path.name, change, options=update)
    call.warn(entry, before)
    return await rendering.one(plane, call, entry)


async def _apply(plane: Plane, call: ResourceRequest) -> EncodedResponse:
    path, version = call.path, call.served.version
    managers, record = plane.objects.field_managers, call.served.resource
    application = await applying.receive(call, applying.object_target(plane, call), plane.clock.now_ns())
    before: Object = {}

    def change(stored: Object) -> Object:
        before.update(stored)
        live = managers.live(record, stored, call.served.api_version) if stored else None
        entries = stored["metadata"].get("managedFields") or [] if stored else []
        obj = application.applied(live, entries, call.warnings)
        if not stored:
            _check_new(plane, call, obj)
        names.check_name(obj, path.name)
        names.settle_namespace(obj, path.namespace)
        owners.merge_repeated(obj, call.warnings, is_patched=True)
        return writes.to_storage(version, obj)

    update = UpdateOptions(path.subresource, dry_run=application.options.dry_run, author=None)
    entry, is_new = await plane.objects.apply(call.key, path.namespace, path.name, change, options=update)
    call.warn(entry, before or None)
    return await rendering.one(plane, call, entry, status=201 if is_new else 200)


def _check_new(plane: Plane, call: ResourceRequest, obj: Object) -> None:
    """Refuse to create for who may only patch (403), and what says that it is a certain object that exists (409)."""
    path = call.path
    if plane.authorizer is not None:
        wanted = Attributes(
            "create", group=path.group, resource=path.resource, namespace=path.namespace, name=path.name
        )
        plane.authorizer.authorize(acting.current(), wanted)
    uid = obj["metadata"].get("uid", "")
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise object_refusals.conflict(call.served.resource, call.path.name, why)
    obj["metadata"].pop("resourceVersion", None)


def _version(call: ResourceRequest, kind: BodyKind) -> Version:
    """The version that a patched object says it has: usually the path's, but a patch may change it."""
    versions = call.served.resource.versions
    return next((each for each in versions if each.message == kind.message), call.served.version)


async def receive(call: ResourceRequest) -> Patch:
    """The request's body as a patch.

    Raises:
        StatusError: 400, 408, 413, 415.
    """
    patch_type = TYPES.get(media_type(call.content_type))
    if call.served.resource.is_custom and patch_type in (None, "strategic"):
        raise http_errors.unsupported_custom_patch()
    if patch_type is None:
        raise http_errors.unsupported_patch()
    return parse(await bodies.read(call.request), patch_type)


def parse(body: bytes, patch_type: PatchType) -> Patch:
    """The patch of a body.

    Raises:
        StatusError: 400 for what is no patch of that type.
    """
    try:
        value = json_text.parse(body)
    except DecodeError:
        raise http_errors.bad_request("invalid JSON patch") from None
    problems = tuple(f'duplicate field "{path}"' for path in _duplicates(value, ""))
    if patch_type == "json":
        operations = json_patch.parse(value)
        return Patch(
            patch_type, json_text.representable(operations), (*problems, *json_patch.unknown_fields(operations))
        )
    if value is None and patch_type == "strategic":
        return Patch(patch_type, {})
    if not isinstance(value, dict):
        raise _no_object(value, patch_type)
    try:
        plain = json_text.plain(value)
    except DecodeError as error:
        raise http_errors.bad_request(
            f"error decoding patch: {error}" if patch_type == "merge" else str(error)
        ) from None
    return Patch(patch_type, plain if patch_type == "strategic" else value, problems)


def _no_object(value: Any, patch_type: PatchType) -> StatusError:
    if value is None:
        return http_errors.bad_request("Invalid JSON Patch")
    text = f"json: cannot unmarshal {json_patch.json_type(value)} into Go value of type {_MAP_TYPE}"
    return http_errors.bad_request(f"error decoding patch: {text}" if patch_type == "merge" else text)


def _duplicates(value: Any, path: str) -> list[str]:
    """The paths of members that stand twice, in the order of the text."""
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in _duplicates(item, f"{path}[{index}]")]
    if not isinstance(value, dict):
        return []
    pairs = value.pairs if isinstance(value, Repeated) else value.items()
    seen: set[str] = set()
    result: list[str] = []
    for key, item in pairs:
        below = f"{path}.{key}" if path else key
        if key in seen:
            result.append(below)
        seen.add(key)
        result += _duplicates(item, below)
    return list(dict.fromkeys(result))
