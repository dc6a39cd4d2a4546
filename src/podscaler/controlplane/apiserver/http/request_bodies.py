"""Reads and decodes request bodies (JSON, YAML, protobuf) into objects of the kind that the path expects.

The handlers of writes and deletes call `read`, then `decode` (of DeleteOptions `decode_options`). Objects are neither
defaulted nor validated here; they have only fields of the schema, in the API version that the client wrote. Unknown and
duplicate fields become warnings or errors, by the query parameter `fieldValidation`.

A new content type: a case in `_parse`, and its media type in `http_errors.BODY_MEDIA_TYPES`.

Source: kube-apiserver's decoder and its errors (docs/spec/api.md 2.9 (Other errors)).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from podscaler.api.protobuf import protobuf
from podscaler.api.resource.resources import Object
from podscaler.api.schema import decoding
from podscaler.api.schema.decoding import Decoded, TypeMeta
from podscaler.api.text import json_text, yaml_text
from podscaler.api.text.json_text import DecodeError
from podscaler.base.errors import StatusError
from podscaler.controlplane.apiserver.http import http_errors
from podscaler.controlplane.apiserver.http.negotiation import JSON, media_type
from podscaler.controlplane.apiserver.http.query_options import FieldValidation

BODY_MAX_BYTES = 3 * 1024 * 1024
READ_TIMEOUT_S = 60.0
"""How long the whole body may take to arrive."""
_UNVERSIONED_KINDS = frozenset({"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"})
"""Kinds of apiVersion v1 that only responses have."""
_NEW_EVENT = "events/v1.Event"
"""Events of events.k8s.io, whose internal type is that of core/v1 events."""
GO_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
"""The end of kube-apiserver's message for an unknown kind, which names a place in its source."""


@dataclass(frozen=True, slots=True)
class BodyKind:
    """A kind in one API version, as a body may state it.

    Attributes:
        api_version: `apps/v1`, `v1`.
        kind: `Deployment`.
        message: the name of its type in the schema (`apps/v1.Deployment`), empty for custom resources.
        custom_decoder: the decoder of custom resources (`Version.decode`); None for kinds of the schema.
    """

    api_version: str
    kind: str
    message: str
    custom_decoder: Callable[[Any], Decoded] | None = None

    def decode(self, value: Any) -> Decoded:
        """The object of a parsed body (any JSON value), and the problems in it. Raises DecodeError."""
        if self.custom_decoder is not None:
            return self.custom_decoder(value)
        return decoding.decode_value(value, self.message)

    @property
    def version(self) -> str:
        """`v1` of `apps/v1`."""
        return self.api_version.rpartition("/")[2]

    @property
    def internal_name(self) -> str:
        """The name of the internal (versionless) Go type in kube-apiserver's messages: `autoscaling.Scale`."""
        group = "" if self.message == _NEW_EVENT else self.api_version.rpartition("/")[0]
        return f"{group.partition('.')[0] or 'core'}.{self.kind}"


Kinds = Mapping[tuple[str, str], BodyKind]
"""Every kind that can be decoded, by apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded body.

    Attributes:
        obj: the object, in the version of `kind`.
        kind: the kind that the body states; the expected kind if it states none.
        warnings: texts for `Warning` headers.
    """

    obj: Object
    kind: BodyKind
    warnings: tuple[str, ...] = ()


async def read(request: web.BaseRequest) -> bytes:
    """The whole body.

    Raises StatusError 413 for a body over `BODY_MAX_BYTES`, 408 for one that takes over `READ_TIMEOUT_S`.
    """
    if (request.content_length or 0) > BODY_MAX_BYTES:
        raise http_errors.too_large(BODY_MAX_BYTES)
    if not request.body_exists:
        return b""
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            return await _read_limited(request)
    except TimeoutError:
        raise StatusError("the body of the request did not arrive in time", code=408, reason="Timeout") from None


async def _read_limited(request: web.BaseRequest) -> bytes:
    """The body. Raises StatusError 413 as soon as it is too large."""
    chunks: list[bytes] = []
    length = 0
    async for chunk in request.content.iter_any():
        length += len(chunk)
        if length > BODY_MAX_BYTES:
            raise http_errors.too_large(BODY_MAX_BYTES)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def decode(
    body: bytes, content_type: str, expected: BodyKind, kinds: Kinds, *, validation: FieldValidation = "Warn"
) -> DecodedBody:
    """The object of a body that should be of the kind `expected`; its version may be another one (`check_version`).

    Raises StatusError 400 for a body that cannot be decoded or is of another kind, 415 for an unknown content type.
    """
    try:
        parsed = _parse(body, content_type, expected)
    except DecodeError as error:
        raise _unrecognized_error(str(error), body, expected) from None
    kind = _stated_kind(parsed.meta, body, expected, kinds)
    try:
        decoded = parsed.decode(kind)
    except DecodeError as error:
        raise _cannot_be_handled_error(kind, expected, str(error)) from None
    problems = decoded.problems
    if problems and validation == "Strict":
        raise _cannot_be_handled_error(kind, expected, http_errors.strict_decoding_text(problems))
    if kind.kind != expected.kind and expected.custom_decoder is None:
        raise _cannot_be_handled_error(kind, expected, unknown_conversion_text(kind, expected))
    return DecodedBody(with_type_meta(decoded, kind), kind, warning_texts(problems) if validation == "Warn" else ())


def decode_options(body: bytes, content_type: str, expected: BodyKind, kinds: Kinds) -> Object:
    """The options (DeleteOptions) in a body, which may have the apiVersion of any group and version that is served.

    Raises StatusError 400 with the decoder's message alone, 415 for an unknown content type.
    """
    try:
        parsed = _parse(body, content_type, expected)
        kind_name, api_version = parsed.meta.kind or expected.kind, parsed.meta.api_version or expected.api_version
        served_versions = {*(version for version, _ in kinds), expected.api_version, "meta.k8s.io/v1"}
        if kind_name != expected.kind or api_version not in served_versions:
            message = f'no kind "{kind_name}" is registered for version "{api_version}" {GO_SCHEME}'
            raise http_errors.bad_request(message)
        return parsed.decode(expected).obj
    except DecodeError as error:
        raise http_errors.bad_request(str(error)) from None


def with_type_meta(decoded: Decoded, kind: BodyKind) -> Object:
    """A decoded object with kind and apiVersion as its first members."""
    other_members = {name: member for name, member in decoded.obj.items() if name not in ("kind", "apiVersion")}
    return {"kind": kind.kind, "apiVersion": kind.api_version, **other_members}


def warning_texts(problems: tuple[str, ...]) -> tuple[str, ...]:
    """Problems as texts of warnings; a problem of the YAML decoder, with a line for each error, becomes several."""
    warnings: list[str] = []
    for problem in problems:
        if problem.startswith("yaml: unmarshal errors:\n"):
            warnings += [line.strip() for line in problem.splitlines()[1:]]
        else:
            warnings.append(problem)
    return tuple(warnings)


def check_version(received: DecodedBody, expected: BodyKind) -> None:
    """Check that an object is of the version of the path. Raises StatusError 400 otherwise."""
    if received.kind.api_version != expected.api_version:
        raise http_errors.bad_request(
            f"the API version in the data ({received.kind.api_version}) does not match "
            f"the expected API version ({expected.api_version})"
        )


@dataclass(frozen=True, slots=True)
class _ParsedBody:
    """A body with valid syntax: the kind and apiVersion that it states, and a function that decodes it as a kind."""

    meta: TypeMeta
    decode: Callable[[BodyKind], Decoded]


def _parse(body: bytes, content_type: str, expected: BodyKind) -> _ParsedBody:
    """The body, whose syntax is checked, by its content type (empty: JSON). Raises DecodeError, StatusError 415."""
    match media_type(content_type) if content_type else JSON:
        case "application/json":
            return _parse_json(body)
        case "application/yaml":
            return _parse_yaml(body)
        case "application/vnd.kubernetes.protobuf" if expected.custom_decoder is None:
            sent = protobuf.decode(body, expected.message)
            return _ParsedBody(TypeMeta(sent.api_version, sent.kind), lambda kind: kind.decode(sent.obj))
        case _:
            raise http_errors.unsupported_body()


def _unrecognized_error(decoder_message: str, body: bytes, expected: BodyKind) -> StatusError:
    """The error 400 for a body without valid syntax or a recognizable kind; it quotes the beginning of the body."""
    message = f"the object provided is unrecognized (must be of type {expected.kind}): {decoder_message}"
    return http_errors.bad_request(f"{message} ({decoding.summary(body)})")


def _parse_json(body: bytes) -> _ParsedBody:
    """The kind of a JSON body and its decoder. Raises DecodeError."""
    try:
        document = json_text.parse(body)
    except DecodeError as error:
        raise DecodeError(f"couldn't get version/kind; json parse error: {error}") from None
    return _ParsedBody(decoding.read_type_meta(document), lambda kind: kind.decode(document))


def _parse_yaml(body: bytes) -> _ParsedBody:
    """The kind of a YAML body and its decoder; repeated keys are problems. Raises DecodeError."""
    document = yaml_text.parse(body)
    duplicate_problems = (document.duplicates_text(),) if document.duplicates else ()

    def decode(kind: BodyKind) -> Decoded:
        decoded = kind.decode(document.value)
        return Decoded(decoded.obj, (*duplicate_problems, *decoded.problems))

    return _ParsedBody(decoding.read_type_meta(document.value), decode)


def _stated_kind(meta: TypeMeta, body: bytes, expected: BodyKind, kinds: Kinds) -> BodyKind:
    """The kind that a body states (by default the expected one); a custom object must state its kind.

    Raises StatusError 400 for an unknown kind; a wrong kind of a custom object is left to its validation.
    """
    if expected.custom_decoder is not None:
        if not meta.kind:
            raise _unrecognized_error(f"Object 'Kind' is missing in '{body.decode(errors='replace')}'", body, expected)
        return replace(expected, api_version=meta.api_version, kind=meta.kind)
    kind_name = meta.kind or expected.kind
    api_version = meta.api_version or expected.api_version
    if (api_version, kind_name) == (expected.api_version, expected.kind):
        return expected
    body_kind = kinds.get((api_version, kind_name))
    if body_kind is None:
        if api_version.count("/") > 1:
            raise _unrecognized_error(f"unexpected GroupVersion string: {api_version}", body, expected)
        unknown = BodyKind(api_version, kind_name, "")
        message = f'no kind "{kind_name}" is registered for version "{api_version}" {GO_SCHEME}'
        if _is_never_a_body(api_version, kind_name, kinds):
            message = unknown_conversion_text(unknown, expected)
        raise _cannot_be_handled_error(unknown, expected, message)
    return body_kind


def _is_never_a_body(api_version: str, kind_name: str, kinds: Kinds) -> bool:
    """Whether a kind exists but is never sent as a body: a list, options, a Status."""
    if api_version == "v1" and kind_name in _UNVERSIONED_KINDS:
        return True
    return (api_version, kind_name.removesuffix("List")) in kinds


def unknown_conversion_text(kind: BodyKind, expected: BodyKind) -> str:
    """kube-apiserver's message for an object of another kind than the expected one."""
    return f"converting ({kind.version}.{kind.kind}) to ({expected.internal_name}): unknown conversion"


def _cannot_be_handled_error(kind: BodyKind, expected: BodyKind, cause: str) -> StatusError:
    """The error 400 for a body of the kind `kind` that is no valid object of the kind `expected`, for a cause."""
    return http_errors.bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {expected.kind}: {cause}'
    )
