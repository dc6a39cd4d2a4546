"""In which form a client wants its answer: media type, and object, Table or bare metadata.

Called by `app` once a request; results are cached by header text, for clients send few different ones.

Rules, as upstream has them:

1. If no clause of `Accept` names a media type of ours (or `*/*`): 406 with the list of ours.
2. Clauses in order of preference (`q`, then as written): the first of ours whose parameters we can satisfy wins.
3. `as=...;v=...;g=...` asks for a transformation. A clause with one that we do not know is passed over; if none is
   left: 406 with another text.

Source: RFC 9110 section 12.5.1; the API concepts on Table and PartialObjectMetadata. Differs: answers are never
protobuf, for which upstream's clients always offer JSON too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from podscaler.controlplane.server import refusals

Shape = Literal["object", "table", "partial", "partial_list", "discovery"]

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
DISCOVERY_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_SHAPES: Mapping[str, Shape] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial_list",
}
_META_VERSIONS = ("v1", "v1beta1")
HEADER_MAX_CHARACTERS = 4096


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer.

    Attributes:
        encoding: JSON or YAML.
        shape: the object itself, or what it is turned into.
        meta_version: the version of meta.k8s.io in which a Table or bare metadata is wanted.
    """

    encoding: Literal["json", "yaml"] = "json"
    shape: Shape = "object"
    meta_version: str = "v1"


PLAIN = Form()


@dataclass(frozen=True, slots=True)
class _Clause:
    media_type: str
    parameters: Mapping[str, str]
    quality: float


@lru_cache(maxsize=256)
def resource_form(accept: str, *, can_stream: bool) -> Form:
    """The form for an answer about a resource.

    Args:
        accept: the `Accept` header, empty where there is none.
        can_stream: whether the path can be watched (only matters for the text of the refusal).

    Raises:
        StatusError: 406.
    """
    return _negotiated(accept, can_stream=can_stream, aggregates=False)


@lru_cache(maxsize=64)
def discovery_form(accept: str, *, aggregates: bool) -> Form:
    """The form for an answer about what is served; `aggregates` where the aggregated form exists.

    Raises:
        StatusError: 406.
    """
    return _negotiated(accept, can_stream=False, aggregates=aggregates)


def refusal_form(accept: str) -> Form:
    """The form for a Status about a request whose own form could not be found: YAML if it comes first, else JSON."""
    for clause in _clauses(accept):
        if clause.media_type == YAML:
            return Form("yaml")
        if clause.media_type in (JSON, "*/*"):
            return PLAIN
    return PLAIN


def _negotiated(accept: str, *, can_stream: bool, aggregates: bool) -> Form:
    clauses = _clauses(accept)
    if not clauses:
        return PLAIN
    ours = [clause for clause in clauses if clause.media_type in (JSON, YAML, PROTOBUF, "*/*", "application/*")]
    if not ours:
        raise refusals.none_acceptable(can_stream=can_stream)
    for clause in ours:
        form = _satisfied(clause, aggregates=aggregates)
        if form is not None:
            return form
    if all(clause.media_type == PROTOBUF for clause in ours):
        raise refusals.none_acceptable(can_stream=can_stream)
    raise refusals.no_such_form()


def _satisfied(clause: _Clause, *, aggregates: bool) -> Form | None:
    """The form that a clause asks for, None where we do not have it."""
    if clause.media_type == PROTOBUF:
        return None
    encoding: Literal["json", "yaml"] = "yaml" if clause.media_type == YAML else "json"
    wanted = clause.parameters.get("as")
    if wanted is None:
        return Form(encoding)
    version, group = clause.parameters.get("v", ""), clause.parameters.get("g", "")
    if aggregates:
        is_known = (wanted, group, version) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
        return Form(encoding, "discovery") if is_known else None
    if wanted == "APIGroupDiscoveryList" and group == "apidiscovery.k8s.io":
        return None
    if wanted in _SHAPES and group == "meta.k8s.io" and version in _META_VERSIONS:
        return Form(encoding, _SHAPES[wanted], version)
    return None


def _clauses(accept: str) -> Sequence[_Clause]:
    """The clauses of an Accept header, most wanted first; what cannot be read is left out."""
    found = [_clause(text) for text in accept[:HEADER_MAX_CHARACTERS].split(",") if text.strip()]
    return sorted((clause for clause in found if clause.quality > 0), key=lambda clause: -clause.quality)


def _clause(text: str) -> _Clause:
    media_type, *rest = (part.strip() for part in text.split(";"))
    parameters: dict[str, str] = {}
    for part in rest:
        name, _, value = part.partition("=")
        parameters[name.strip()] = value.strip().strip('"')
    return _Clause(media_type.lower(), parameters, _quality(parameters.pop("q", "1")))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


@lru_cache(maxsize=64)
def media_type(content_type: str) -> str:
    """The media type of a `Content-Type` header, in lower case and without parameters; empty where there is none."""
    return content_type.partition(";")[0].strip().lower()
