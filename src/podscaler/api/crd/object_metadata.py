"""The metadata of custom objects and of objects embedded in them: decoded like everybody's, kept in its usual form.

Called by `decoding` and `records`. A schema may say that `metadata` exists, and restrict name and generateName; what is
in it is ObjectMeta all the same.

Source: the API documentation of x-kubernetes-embedded-resource.
"""

from typing import Any

from podscaler.api.crd.structural import Structural
from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required
from podscaler.api.resource import metadata as metadata_rules
from podscaler.api.resource.resources import Object
from podscaler.api.schema import canonical, decoding
from podscaler.api.text.json_text import DecodeError

MESSAGE = "meta/v1.ObjectMeta"


def decoded(value: Any, path: str = "metadata") -> tuple[Object, list[str]]:
    """Clean metadata and what was odd about it (`unknown field "metadata.x"`). Raises DecodeError."""
    found = decoding.decode_value(value, MESSAGE)
    return found.obj, [problem.replace('field "', f'field "{path}.', 1) for problem in found.problems]


def stored(metadata: Object) -> Object:
    """Metadata as every kind stores it: nothing that is empty."""
    return canonical.canonical(metadata, MESSAGE)


def coerce_embedded(value: Any, schema: Structural | None, path: str = "") -> list[str]:
    """Clean, in place, the metadata of embedded objects; returns what was odd. Raises DecodeError."""
    if schema is None:
        return []
    problems: list[str] = []
    if isinstance(value, list):
        for index, item in enumerate(value):
            problems += coerce_embedded(item, schema.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.is_embedded and path and "metadata" in value:
            value["metadata"], problems = _decoded_embedded(value["metadata"], f"{path}.metadata")
        for name, member in value.items():
            known = schema.properties.get(name, schema.additional)
            problems += coerce_embedded(member, known, f"{path}.{name}" if path else name)
    return problems


def _decoded_embedded(metadata: Any, path: str) -> tuple[Object, list[str]]:
    try:
        return decoded(metadata, path)
    except DecodeError as error:
        raise DecodeError(str(invalid(path, metadata, str(error)))) from None


def embedded_faults(value: Any, schema: Structural | None, path: str = "") -> list[FieldError]:
    """What is wrong with apiVersion, kind and metadata of embedded objects."""
    if schema is None:
        return []
    found: list[FieldError] = []
    if isinstance(value, list):
        for index, item in enumerate(value):
            found += embedded_faults(item, schema.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        found = _of_embedded(value, path) if schema.is_embedded and path else []
        for name, member in value.items():
            known = schema.properties.get(name, schema.additional)
            found += embedded_faults(member, known, f"{path}.{name}" if path else name)
    return found


def _of_embedded(value: Object, path: str) -> list[FieldError]:
    found = []
    for name in ("apiVersion", "kind"):
        if not value.get(name):
            found.append(required(f"{path}.{name}"))
    api_version = value.get("apiVersion")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        text = f"unexpected GroupVersion string: {api_version}"
        found.append(invalid(f"{path}.apiVersion", api_version, text))
    kind = value.get("kind")
    if isinstance(kind, str) and kind:
        texts = names.dns_label_faults(kind.lower())
        found += [
            invalid(f"{path}.kind", kind, f"may have mixed case, but should otherwise match: {each}") for each in texts
        ]
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        found += _of_metadata(metadata, f"{path}.metadata")
    return found


def _of_metadata(metadata: Object, path: str) -> list[FieldError]:
    found = metadata_rules.label_errors(metadata.get("labels") or {}, f"{path}.labels")
    return found + metadata_rules.annotation_errors(metadata.get("annotations") or {}, f"{path}.annotations")
