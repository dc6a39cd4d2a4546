"""A structural schema as a tree that can be walked: what a CustomResourceDefinition says about its objects.

Called by `records`, which parses each version's schema once; pruning, defaulting, validation, list types and OpenAPI
walk the tree. The definition was validated before, so nothing here complains: what cannot be read means nothing.

Source: the API documentation of structural schemas (CustomResourceDefinition v1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Schema = dict[str, Any]
"""One JSONSchemaProps as JSON-ready data."""

ABSENT: Final = object()
"""There is no default; null would be one."""

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
"""What every object has, whether its schema says so or not."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueConstraints:
    """The constraints on values of one node; None (or empty) where there is none."""

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
        types: JSON types, any of which a value may have; empty for all.
        format: of texts and numbers.
        nullable: whether null is a value.
        default: what an absent value becomes; ABSENT without one.
        properties: the known members of an object.
        additional: the schema of all other members, None where they have none.
        allows_additional: whether there may be other members (`additionalProperties`).
        items: of a list's elements.
        preserves_unknown: whether members that are not known stay.
        is_embedded: whether it is an object of the API with apiVersion, kind and metadata.
        list_type, list_map_keys, map_type: as server-side apply wants them.
        limits: constraints on the value.
        all_of, any_of, one_of, none_of: further schemas that a value must meet (or must not).
        source: the schema that it was made from.
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
    map_type: str = ""
    limits: ValueConstraints = field(default_factory=ValueConstraints)
    all_of: tuple["Structural", ...] = ()
    any_of: tuple["Structural", ...] = ()
    one_of: tuple["Structural", ...] = ()
    none_of: "Structural | None" = None
    source: Schema = field(default_factory=dict)


INT_OR_STRING = ("integer", "string")


def parse(schema: Schema) -> Structural:
    """The tree of a validated schema."""
    additional = schema.get("additionalProperties")
    return Structural(
        types=_types(schema),
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
        map_type=schema.get("x-kubernetes-map-type") or "",
        limits=_limits(schema),
        all_of=_each(schema, "allOf"),
        any_of=_each(schema, "anyOf"),
        one_of=_each(schema, "oneOf"),
        none_of=parse(schema["not"]) if isinstance(schema.get("not"), dict) else None,
        source=schema,
    )


def has_rules(schema: Structural) -> bool:
    """Whether any node has rules (x-kubernetes-validations)."""
    if schema.source.get("x-kubernetes-validations"):
        return True
    below = (*schema.properties.values(), schema.items, schema.additional)
    return any(one is not None and has_rules(one) for one in below)


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return INT_OR_STRING
    return (schema["type"],) if schema.get("type") else ()


def _each(schema: Schema, name: str) -> tuple[Structural, ...]:
    return tuple(parse(one) for one in schema.get(name) or ())


def _limits(schema: Schema) -> ValueConstraints:
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
