"""Negotiates the content type: from an `Accept` header to the encoding and shape of the response.

`dispatch` and the discovery handlers call it for every request; results are cached by header text, as clients send few
different ones. `application/json;as=Table;v=v1;g=meta.k8s.io, application/json` (kubectl get) becomes
`Form("json", "table", "v1")`.

Rules (kube-apiserver's):

1. If no clause of `Accept` names a media type that is served (or `*/*`): 406 with the list of those.
2. Clauses in order of preference (`q`, then as written): the first whose media type is served and whose parameters can
   be satisfied wins.
3. `as=...;v=...;g=...` asks for a transformation. A clause with an unknown one is skipped; if none is left: 406 with
   another text.
4. Protobuf has no Tables, and there is no protobuf of custom resources except for their PartialObjectMetadata.

A new transformation: a `Shape`, its name in `_SHAPES`, its body in `object_responses` and `streaming.watch_streams`. A
new encoding: an `Encoding`, its media type in `_ENCODINGS` and `http_errors.BODY_MEDIA_TYPES`, its body in `responses`.

Source: RFC 9110 section 12.5.1; the API concepts on Table and PartialObjectMetadata.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from podscaler.controlplane.apiserver.http import http_errors

Shape = Literal["object", "table", "partial", "partial_list", "discovery"]
Encoding = Literal["json", "yaml", "protobuf"]

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
DISCOVERY_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_SHAPES: Mapping[str, Shape] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial_list",
}
_PROTOBUF_SHAPES = frozenset({"PartialObjectMetadata", "PartialObjectMetadataList"})
_ENCODINGS: Mapping[str, Encoding] = {JSON: "json", YAML: "yaml", PROTOBUF: "protobuf"}
TransformationSet = Literal["objects", "metadata", "aggregates", "none"]
"""Which transformations a path has: Table and PartialObjectMetadata, only the latter, aggregated discovery, none."""
_META_API_VERSIONS = ("v1", "v1beta1")
HEADER_MAX_CHARACTERS = 4096
"""What follows in a longer `Accept` header is ignored."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a response.

    Attributes:
        encoding: the encoding of the body.
        shape: `object` for the object or list itself, else the requested transformation.
        meta_version: the version of meta.k8s.io of a Table or PartialObjectMetadata.
    """

    encoding: Encoding = "json"
    shape: Shape = "object"
    meta_version: str = "v1"


PLAIN_JSON = Form()
"""The form of a client that accepts everything."""


@dataclass(frozen=True, slots=True)
class _Clause:
    """One media range of an `Accept` header; `quality` is its `q`, which `parameters` lacks."""

    media_type: str
    parameters: Mapping[str, str]
    quality: float


@lru_cache(maxsize=256)
def resource_form(accept: str, *, can_stream: bool, has_protobuf: bool = True, has_tables: bool = True) -> Form:
    """The form of a response about a resource.

    Args:
        accept: the `Accept` header, empty if there is none.
        can_stream: whether the path can be watched (only for the text of the error).
        has_protobuf: whether objects of the resource have a protobuf form.
        has_tables: whether the resource has Tables; reviews have none.

    Raises StatusError 406.
    """
    shapes: TransformationSet = "objects" if has_tables else "metadata"
    return _negotiate(accept, can_stream=can_stream, shapes=shapes, has_protobuf=has_protobuf)


@lru_cache(maxsize=64)
def discovery_form(accept: str, *, aggregates: bool, is_routed: bool = True) -> Form:
    """The form of a discovery document.

    Args:
        accept: the `Accept` header, empty if there is none.
        aggregates: whether the path has aggregated discovery.
        is_routed: whether kube-apiserver's router, which has an error text of its own, checks the header first.

    Raises StatusError 406.
    """
    clauses = _parse_accept(accept)
    if clauses and not is_routed and not _served_clauses(clauses):
        raise http_errors.no_such_form()
    return _negotiate(accept, can_stream=False, shapes="aggregates" if aggregates else "none", has_protobuf=True)


def check_plain(accept: str) -> None:
    """Check that the client accepts plain JSON, the only form that some paths have. Raises StatusError 406."""
    clauses = _parse_accept(accept)
    if clauses and not any(clause.media_type in (JSON, "*/*") for clause in clauses):
        raise http_errors.none_acceptable(can_stream=False, only=JSON)


def error_form(accept: str) -> Form:
    """The form of the Status of an error: the encoding of the first clause that names one, else JSON.

    As in kube-apiserver, clauses with a transformation are skipped, but for PartialObjectMetadata as protobuf.
    """
    for clause in _parse_accept(accept):
        shape = clause.parameters.get("as", "")
        accepted_shapes = {"", *_PROTOBUF_SHAPES} if clause.media_type == PROTOBUF else {""}
        if clause.media_type in _ENCODINGS and shape in accepted_shapes:
            return Form(_ENCODINGS[clause.media_type])
        if clause.media_type == "*/*":
            break
    return PLAIN_JSON


def takes_gzip(headers: Mapping[str, str]) -> bool:
    """Whether `Accept-Encoding` has gzip, without parameters: kube-apiserver does not parse qualities."""
    return any(token.strip() == "gzip" for token in headers.get("Accept-Encoding", "").split(","))


def _negotiate(accept: str, *, can_stream: bool, shapes: TransformationSet, has_protobuf: bool) -> Form:
    """The form of the first clause that can be served. Raises StatusError 406."""
    clauses = _parse_accept(accept)
    if not clauses:
        return PLAIN_JSON
    served = _served_clauses(clauses)
    if not served:
        raise http_errors.none_acceptable(can_stream=can_stream)
    for clause in served:
        form = _find_form(clause, shapes=shapes, has_protobuf=has_protobuf)
        if form is not None:
            return form
    raise http_errors.no_such_form()


def _find_form(clause: _Clause, *, shapes: TransformationSet, has_protobuf: bool) -> Form | None:
    """The form that a clause describes, None if it is not served."""
    encoding = _ENCODINGS.get(clause.media_type, "json")  # `*/*` is JSON
    transformation = clause.parameters.get("as")
    if not transformation:
        return Form(encoding) if encoding != "protobuf" or has_protobuf else None
    if encoding == "protobuf" and transformation not in _PROTOBUF_SHAPES:
        return None
    version, group = clause.parameters.get("v", ""), clause.parameters.get("g", "")
    if shapes == "aggregates":
        is_known = (transformation, group, version) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
        return Form(encoding, "discovery") if is_known else None
    if shapes == "none" or (shapes == "metadata" and transformation == "Table"):
        return None
    if transformation in _SHAPES and group == "meta.k8s.io" and version in _META_API_VERSIONS:
        return Form(encoding, _SHAPES[transformation], version)
    return None


def _served_clauses(clauses: Sequence[_Clause]) -> list[_Clause]:
    """The clauses whose media type is served; their parameters are not checked."""
    return [clause for clause in clauses if clause.media_type in (*_ENCODINGS, "*/*")]


def _parse_accept(accept: str) -> Sequence[_Clause]:
    """The clauses of an Accept header, preferred first, without those of quality 0."""
    clause_texts = [clause_text for clause_text in accept[:HEADER_MAX_CHARACTERS].split(",") if clause_text.strip()]
    clauses = map(_parse_clause, clause_texts)
    return sorted((clause for clause in clauses if clause.quality > 0), key=lambda clause: -clause.quality)


def _parse_clause(clause_text: str) -> _Clause:
    """The clause of a text like `application/json;as=Table;q=0.5`."""
    media_type, *parameter_texts = (part.strip() for part in clause_text.split(";"))
    parameters: dict[str, str] = {}
    for parameter_text in parameter_texts:
        name, _, value = parameter_text.partition("=")
        parameters[name.strip()] = value.strip().strip('"')
    return _Clause(media_type, parameters, _parse_quality(parameters.pop("q", "1")))


def _parse_quality(quality_text: str) -> float:
    """The value of `q`; 1 for a text that is not a number."""
    try:
        return float(quality_text)
    except ValueError:
        return 1.0


@lru_cache(maxsize=64)
def media_type(content_type: str) -> str:
    """The media type of a `Content-Type` header, in lower case and without parameters; empty if there is none."""
    return content_type.partition(";")[0].strip().lower()
