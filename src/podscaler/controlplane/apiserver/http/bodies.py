"""Request bodies: read within limits, parsed by content type, decoded as what the path expects.

Called by the handlers of writes and deletes. Nothing here defaults or validates; what comes out has only known fields,
in the version that the client wrote.

Source: the API server's decoder and its refusals (docs/spec/api.md 2.9 (Other errors)).
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
from podscaler.controlplane.apiserver.http.queries import FieldValidation

LIMIT_BYTES = 3 * 1024 * 1024
READ_TIMEOUT_S = 60.0
_UNVERSIONED = frozenset({"APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"})
_OLD_AND_NEW = "events/v1.Event"
"""The newer face of events, whose internal type is that of the older."""
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'


@dataclass(frozen=True, slots=True)
class BodyKind:
    """A kind in one version: what a body may be.

    Attributes:
        api_version: `apps/v1`, `v1`.
        kind: `Deployment`.
        message: the schema's name.
        decode: for kinds that the schema does not know, see `Version.decode`.
    """

    api_version: str
    kind: str
    message: str
    decode: Callable[[Any], Decoded] | None = None

    def decoded(self, value: Any) -> Decoded:
        """The object of a parsed body. Raises DecodeError."""
        return decoding.decode_value(value, self.message) if self.decode is None else self.decode(value)

    @property
    def version(self) -> str:
        """`v1` of `apps/v1`."""
        return self.api_version.rpartition("/")[2]

    @property
    def internal_name(self) -> str:
        """How upstream names the versionless type in texts: `autoscaling.Scale`."""
        group = "" if self.message == _OLD_AND_NEW else self.api_version.rpartition("/")[0]
        return f"{group.partition('.')[0] or 'core'}.{self.kind}"


Kinds = Mapping[tuple[str, str], BodyKind]
"""Every kind that can be decoded, by apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """A decoded body.

    Attributes:
        obj: the object, in the version of `kind`.
        kind: what the body says that it is (what was expected, where it says nothing).
        warnings: what to tell the client about it.
    """

    obj: Object
    kind: BodyKind
    warnings: tuple[str, ...] = ()


async def read(request: web.BaseRequest) -> bytes:
    """The whole body.

    Raises:
        StatusError: 413 for too long a body, 408 for one that does not come.
    """
    if (request.content_length or 0) > LIMIT_BYTES:
        raise http_errors.too_large(LIMIT_BYTES)
    if not request.body_exists:
        return b""
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            return await _read_limited(request)
    except TimeoutError:
        raise StatusError("the body of the request did not arrive in time", code=408, reason="Timeout") from None


async def _read_limited(request: web.BaseRequest) -> bytes:
    chunks: list[bytes] = []
    length = 0
    async for chunk in request.content.iter_any():
        length += len(chunk)
        if length > LIMIT_BYTES:
            raise http_errors.too_large(LIMIT_BYTES)
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def decode(
    body: bytes, content_type: str, expected: BodyKind, kinds: Kinds, *, validation: FieldValidation = "Warn"
) -> DecodedBody:
    """The object of a body that should be `expected`.

    Raises:
        StatusError: 400 for what cannot be decoded or is something else, 415 for an unknown content type.
    """
    opened = _opened(body, media_type(content_type) if content_type else JSON, expected)
    kind = _kind_of(opened.meta, body, expected, kinds)
    try:
        decoded = opened.decode(kind)
    except DecodeError as error:
        raise _unusable(kind, expected, str(error)) from None
    problems = decoded.problems
    if problems and validation == "Strict":
        raise _unusable(kind, expected, http_errors.strict(problems))
    if kind.kind != expected.kind and expected.decode is None:
        raise _unusable(kind, expected, conversion(kind, expected))
    return DecodedBody(typed(decoded, kind), kind, shown(problems) if validation == "Warn" else ())


def decode_options(body: bytes, content_type: str, expected: BodyKind, kinds: Kinds) -> Object:
    """The options in a body, which may say that they are of any group and version that is served.

    Raises:
        StatusError: 400 in the bare words of the decoder, 415 for an unknown content type.
    """
    try:
        opened = _opened_as(body, media_type(content_type) if content_type else JSON, expected)
        name, api_version = opened.meta.kind or expected.kind, opened.meta.api_version or expected.api_version
        known = {*(version for version, _ in kinds), expected.api_version, "meta.k8s.io/v1"}
        if name != expected.kind or api_version not in known:
            raise http_errors.bad_request(f'no kind "{name}" is registered for version "{api_version}" {SCHEME}')
        return opened.decode(expected).obj
    except DecodeError as error:
        raise http_errors.bad_request(str(error)) from None


def typed(decoded: Decoded, kind: BodyKind) -> Object:
    """A decoded object that says of what kind it is, first of all."""
    obj = {name: value for name, value in decoded.obj.items() if name not in ("kind", "apiVersion")}
    return {"kind": kind.kind, "apiVersion": kind.api_version, **obj}


def shown(problems: tuple[str, ...]) -> tuple[str, ...]:
    """Problems as warnings: those of a YAML decoder come several in one text, and are told one by one."""
    texts: list[str] = []
    for problem in problems:
        if problem.startswith("yaml: unmarshal errors:\n"):
            texts += [line.strip() for line in problem.splitlines()[1:]]
        else:
            texts.append(problem)
    return tuple(texts)


def check_version(received: DecodedBody, expected: BodyKind) -> None:
    """Refuse (400) an object of another version than the path's."""
    if received.kind.api_version != expected.api_version:
        raise http_errors.bad_request(
            f"the API version in the data ({received.kind.api_version}) does not match "
            f"the expected API version ({expected.api_version})"
        )


@dataclass(frozen=True, slots=True)
class _Opened:
    """A body whose syntax is right: what it says that it is, and how to decode it as a kind."""

    meta: TypeMeta
    decode: Callable[[BodyKind], Decoded]


def _opened_as(body: bytes, kind_of_body: str, expected: BodyKind) -> _Opened:
    """Raises DecodeError; StatusError 415."""
    match kind_of_body:
        case "application/json":
            return _opened_json(body)
        case "application/yaml":
            return _opened_yaml(body)
        case "application/vnd.kubernetes.protobuf":
            return _opened_protobuf(body, expected)
        case _:
            raise http_errors.unsupported_body()


def _opened(body: bytes, kind_of_body: str, expected: BodyKind) -> _Opened:
    try:
        return _opened_as(body, kind_of_body, expected)
    except DecodeError as error:
        text = f"the object provided is unrecognized (must be of type {expected.kind}): {error}"
        raise http_errors.bad_request(f"{text} ({decoding.summary(body)})") from None


def _opened_json(body: bytes) -> _Opened:
    try:
        value = json_text.parse(body)
    except DecodeError as error:
        raise DecodeError(f"couldn't get version/kind; json parse error: {error}") from None
    return _Opened(decoding.read_type_meta(value), lambda kind: kind.decoded(value))


def _opened_yaml(body: bytes) -> _Opened:
    document = yaml_text.parse(body)
    repeated = (document.duplicates_text(),) if document.duplicates else ()

    def decode(kind: BodyKind) -> Decoded:
        decoded = kind.decoded(document.value)
        return Decoded(decoded.obj, (*repeated, *decoded.problems))

    return _Opened(decoding.read_type_meta(document.value), decode)


def _opened_protobuf(body: bytes, expected: BodyKind) -> _Opened:
    if expected.decode is not None:
        raise http_errors.unsupported_body()
    found = protobuf.decode(body, expected.message)
    return _Opened(TypeMeta(found.api_version, found.kind), lambda kind: kind.decoded(found.obj))


def _kind_of(meta: TypeMeta, body: bytes, expected: BodyKind, kinds: Kinds) -> BodyKind:
    if expected.decode is not None:
        return _custom_kind(meta, body, expected)
    name = meta.kind or expected.kind
    api_version = meta.api_version or expected.api_version
    if (api_version, name) == (expected.api_version, expected.kind):
        return expected
    found = kinds.get((api_version, name))
    if found is None:
        if api_version.count("/") > 1:
            text = f"unexpected GroupVersion string: {api_version}"
            recognized = f"the object provided is unrecognized (must be of type {expected.kind}): {text}"
            raise http_errors.bad_request(f"{recognized} ({decoding.summary(body)})")
        unknown = BodyKind(api_version, name, "")
        if _is_no_body(api_version, name, kinds):
            raise _unusable(unknown, expected, conversion(unknown, expected))
        text = f'no kind "{name}" is registered for version "{api_version}" {SCHEME}'
        raise _unusable(unknown, expected, text)
    return found


def _is_no_body(api_version: str, name: str, kinds: Kinds) -> bool:
    """Whether it is a kind that is known and yet never sent as a body: a list, options, a Status."""
    if api_version == "v1" and name in _UNVERSIONED:
        return True
    return (api_version, name.removesuffix("List")) in kinds


def conversion(kind: BodyKind, expected: BodyKind) -> str:
    """Why an object of another kind is none of the one expected."""
    return f"converting ({kind.version}.{kind.kind}) to ({expected.internal_name}): unknown conversion"


def _custom_kind(meta: TypeMeta, body: bytes, expected: BodyKind) -> BodyKind:
    """A custom object is what it says that it is, which it must say; its validation judges whether that is right."""
    if not meta.kind:
        text = f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
        recognized = f"the object provided is unrecognized (must be of type {expected.kind}): {text}"
        raise http_errors.bad_request(f"{recognized} ({decoding.summary(body)})")
    return replace(expected, api_version=meta.api_version, kind=meta.kind)


def _unusable(kind: BodyKind, expected: BodyKind, text: str) -> StatusError:
    return http_errors.bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {expected.kind}: {text}'
    )
