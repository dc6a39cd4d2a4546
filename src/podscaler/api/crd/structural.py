"""Parses the structural schema of a CustomResourceDefinition's version to a tree of `Structural` nodes.

    parse({"type": "object", "properties": {"size": {"type": "integer"}}}).properties["size"].types      ("integer",)

Called by `records`, which parses each version's schema once; pruning, defaulting, validation, list types and rules
recurse into the tree. The definition is valid already, so parsing reports no errors. A new keyword: add it to
Structural or ValueConstraints, and to `parse`.

Source: the API documentation of structural schemas (CustomResourceDefinition v1).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Schema = dict[str, Any]
"""One JSONSchemaProps as JSON-ready data."""

ABSENT: Final = object()
"""Stands for a value or default that does not exist; None is JSON's null."""

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
"""The fields that every object has, with or without a schema for them."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueConstraints:
    """The keywords of one node that restrict values (`maxLength`, ...); None or empty if a keyword is missing."""

    maximum: float | None = None
    exclusive_maximum: bool = False
    minimum: float | None = None
    exclusive_minimum: bool = False
    multiple_of: float | None = None
    max_length: int | None = None
    min_length: int | None = None
    pattern: str = ""
    max_items: int | None = None
    min_items: int | None = None
    unique_items: bool = False
    max_properties: int | None = None
    min_properties: int | None = None
    enum: tuple[Any, ...] = ()
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Structural:
    """One node of the tree.

    Attributes:
        types: the JSON types, any of which a value may have; empty for all types.
        format: the format of texts or numbers (`date-time`); empty without one.
        nullable: whether null is a valid value.
        default: the default; ABSENT without one.
        properties: the schemas of the known members of an object, by name.
        additional: the schema of all other members; None without one.
        allows_additional: whether other members are allowed (`additionalProperties`).
        items: the schema of the elements of a list; None without one.
        preserves_unknown: whether unknown members are kept (x-kubernetes-preserve-unknown-fields).
        is_embedded: whether it is a resource with apiVersion, kind and metadata (x-kubernetes-embedded-resource).
        list_type, list_map_keys: x-kubernetes-list-type and -list-map-keys; else empty.
        limits: the keywords that restrict values.
        all_of, any_of, one_of, none_of: the schemas of `allOf`, `anyOf`, `oneOf` and `not`.
        source: the JSON-ready schema that was parsed.
    """

    types: tuple[str, ...] = ()
    format: str = ""
    nullable: bool = False
    default: Any = ABSENT
    properties: Mapping[str, "Structural"] = field(default_factory=dict)
    additional: "Structural | None" = None
    allows_additional: bool = False
    items: "Structural | None" = None
    preserves_unknown: bool = False
    is_embedded: bool = False
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    limits: ValueConstraints = field(default_factory=ValueConstraints)
    all_of: tuple["Structural", ...] = ()
    any_of: tuple["Structural", ...] = ()
    one_of: tuple["Structural", ...] = ()
    none_of: "Structural | None" = None
    source: Schema = field(default_factory=dict)

    def member(self, name: str) -> "Structural | None":
        """The schema of a member; None for an unknown member."""
        return self.properties.get(name, self.additional)


INT_OR_STRING = ("integer", "string")


def parse(schema: Schema) -> Structural:
    """The tree of a valid schema."""
    additional = schema.get("additionalProperties")
    return Structural(
        types=_json_types(schema),
        format=schema.get("format", ""),
        nullable=bool(schema.get("nullable")),
        default=schema.get("default", ABSENT),
        properties={name: parse(member) for name, member in (schema.get("properties") or {}).items()},
        additional=parse(additional) if isinstance(additional, dict) else None,
        allows_additional=isinstance(additional, dict) or additional is True,
        items=parse(schema["items"]) if isinstance(schema.get("items"), dict) else None,
        preserves_unknown=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        is_embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        list_type=schema.get("x-kubernetes-list-type") or "",
        list_map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        limits=_parse_constraints(schema),
        all_of=_parse_subschemas(schema, "allOf"),
        any_of=_parse_subschemas(schema, "anyOf"),
        one_of=_parse_subschemas(schema, "oneOf"),
        none_of=parse(schema["not"]) if isinstance(schema.get("not"), dict) else None,
        source=schema,
    )


def has_rules(schema: Structural) -> bool:
    """Whether any node has rules (x-kubernetes-validations)."""
    if schema.source.get("x-kubernetes-validations"):
        return True
    subschemas = (*schema.properties.values(), schema.items, schema.additional)
    return any(subschema is not None and has_rules(subschema) for subschema in subschemas)


def embedded_resources(value: Any, schema: Structural | None, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The embedded resources below the root, each before those within it, with their paths (`spec.items[0]`)."""
    if schema is None:
        return
    if isinstance(value, list):
        for index, member in enumerate(value):
            if isinstance(member, dict | list):
                yield from embedded_resources(member, schema.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        if schema.is_embedded and path:
            yield path, value
        for name, member in value.items():
            if isinstance(member, dict | list):
                yield from embedded_resources(member, schema.member(name), f"{path}.{name}" if path else name)


def _json_types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return INT_OR_STRING
    return (schema["type"],) if schema.get("type") else ()


def _parse_subschemas(schema: Schema, name: str) -> tuple[Structural, ...]:
    return tuple(parse(subschema) for subschema in schema.get(name) or ())


def _parse_constraints(schema: Schema) -> ValueConstraints:
    """The constraints of single values."""
    return ValueConstraints(
        maximum=schema.get("maximum"),
        exclusive_maximum=bool(schema.get("exclusiveMaximum")),
        minimum=schema.get("minimum"),
        exclusive_minimum=bool(schema.get("exclusiveMinimum")),
        multiple_of=schema.get("multipleOf"),
        max_length=schema.get("maxLength"),
        min_length=schema.get("minLength"),
        pattern=schema.get("pattern", ""),
        max_items=schema.get("maxItems"),
        min_items=schema.get("minItems"),
        unique_items=bool(schema.get("uniqueItems")),
        max_properties=schema.get("maxProperties"),
        min_properties=schema.get("minProperties"),
        enum=tuple(schema.get("enum") or ()),
        required=tuple(schema.get("required") or ()),
    )
