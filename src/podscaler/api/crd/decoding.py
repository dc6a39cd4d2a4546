"""Decodes request bodies of custom objects: prunes unknown fields, drops nulls, decodes metadata.

`records` registers `decoded` as `Version.decode`, in place of `podscaler.api.schema.decoding`.

Source: the behaviour of kube-apiserver with custom resources; the messages of fieldValidation=Strict.
"""

from collections.abc import Mapping
from typing import Any

from podscaler.api.crd import defaulting, pruning, structural
from podscaler.api.crd.structural import META_FIELDS, Structural
from podscaler.api.machinery.field import invalid
from podscaler.api.resource.resources import Object
from podscaler.api.schema import decoding
from podscaler.api.schema.decoding import Decoded
from podscaler.api.text import json_text, quoting
from podscaler.api.text.json_text import DecodeError, Repeated

OBJECT_META = "meta/v1.ObjectMeta"
_ANY_FIELDS = Structural(preserves_unknown=True)
"""The schema of any object: nothing is pruned."""


def decoded(value: Any, group: str, schemas: Mapping[str, Structural]) -> Decoded:
    """The object of a parsed body, with its unknown and duplicate fields. Raises DecodeError.

    Args:
        value: the parsed body (`json_text.parse`).
        group: the API group of the kind; an object of another group is not pruned.
        schemas: the schemas of the kind, by apiVersion; in an unknown version every field is unknown.
    """
    if not isinstance(value, dict):
        raise DecodeError("json: cannot unmarshal array into Go value of type map[string]interface {}")
    problems = [f"duplicate field {quoting.quoted(path)}" for path in _repeated_paths(value, "")]
    plain: Object = json_text.plain(value)
    metadata, unknown_fields = _decode_metadata(plain.get("metadata") or {}, "metadata")
    problems += unknown_fields
    api_version = plain.get("apiVersion")
    is_of_group = isinstance(api_version, str) and api_version.rpartition("/")[0] == group
    schema = schemas.get(str(api_version), pruning.NO_FIELDS) if is_of_group else _ANY_FIELDS
    problems += [f"unknown field {quoting.quoted(path)}" for path in pruning.prune(plain, schema)]
    defaulting.drop_nulls(plain, schema)
    problems += decode_embedded_metadata(plain, schema)
    other_fields = {name: plain[name] for name in sorted(plain) if name not in META_FIELDS}
    return Decoded({"metadata": metadata, **other_fields}, tuple(dict.fromkeys(problems)))


def decode_embedded_metadata(obj: Object, schema: Structural) -> list[str]:
    """Decode, in place, the metadata of embedded resources; returns the problems. Raises DecodeError."""
    problems: list[str] = []
    for path, embedded in structural.embedded_resources(obj, schema):
        if "metadata" in embedded:
            metadata_path = f"{path}.metadata"
            try:
                embedded["metadata"], messages = _decode_metadata(embedded["metadata"], metadata_path)
            except DecodeError as error:
                raise DecodeError(str(invalid(metadata_path, embedded["metadata"], str(error)))) from None
            problems += messages
    return problems


def _decode_metadata(value: Any, path: str) -> tuple[Object, list[str]]:
    """Metadata without unknown fields, and the problems (`unknown field "metadata.x"`)."""
    decoded_metadata = decoding.decode_value(value, OBJECT_META)  # its problems name fields below the metadata
    problems = [problem.replace('field "', f'field "{path}.', 1) for problem in decoded_metadata.problems]
    return decoded_metadata.obj, problems


def _repeated_paths(value: Any, path: str) -> list[str]:
    """The paths of members whose key is repeated."""
    if isinstance(value, list):
        return [
            repeated_path
            for index, item in enumerate(value)
            for repeated_path in _repeated_paths(item, f"{path}[{index}]")
        ]
    if not isinstance(value, dict):
        return []
    repeated_paths: list[str] = []
    seen_names: set[str] = set()
    for name, member in value.pairs if isinstance(value, Repeated) else value.items():
        member_path = f"{path}.{name}" if path else name
        if name in seen_names:
            repeated_paths.append(member_path)
        seen_names.add(name)
        repeated_paths += _repeated_paths(member, member_path)
    return repeated_paths
