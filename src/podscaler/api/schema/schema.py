"""Reads the facts about the Kubernetes API types (messages) and their fields from data/types/*.json.

    get_message("apps/v1.Deployment").fields[0]      Field(name="metadata", type="meta/v1.ObjectMeta", number=1, ...)
    find_kind("autoscaling/v2", "Scale")             None: the package has no such message

The only source of facts about types for decoding, protobuf, OpenAPI, server-side apply and merge patches. A message is
named by the last two parts of the Go package and the type. A new kind or field: `tools/type_facts` writes the files.

Invariants: files are read once, one per Go package, when a message of that package is first needed (about 1 ms for
core/v1); messages and fields are immutable; fields are in the order of the Go struct, which is the order of JSON
output; unknown names, which clients may send, are not cached without bound.

Source: k8s.io/api, apimachinery, apiextensions-apiserver and metrics v0.37.0, read by tools/type_facts; by hand, since
no longer published there: autoscaling v2beta2, v2beta1 and v2alpha1, extensions/v1beta1 (docs/spec/api.md 6 (Older
versions)).
"""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import msgspec

SCALARS = frozenset({"string", "int32", "int64", "uint32", "bool", "double", "bytes"})

QUANTITY = "api/resource.Quantity"
TIME = "meta/v1.Time"
MICRO_TIME = "meta/v1.MicroTime"
DURATION = "meta/v1.Duration"
INT_OR_STRING = "util/intstr.IntOrString"
RAW_EXTENSION = "pkg/runtime.RawExtension"
FIELDS_V1 = "meta/v1.FieldsV1"
JSON = "apiextensions/v1.JSON"
SCHEMA_OR_ARRAY = "apiextensions/v1.JSONSchemaPropsOrArray"
SCHEMA_OR_BOOL = "apiextensions/v1.JSONSchemaPropsOrBool"
SCHEMA_OR_STRINGS = "apiextensions/v1.JSONSchemaPropsOrStringArray"

FREE_FORM = frozenset({RAW_EXTENSION, FIELDS_V1, JSON})
"""Messages whose JSON may be any value."""

UNIONS = frozenset({SCHEMA_OR_ARRAY, SCHEMA_OR_BOOL, SCHEMA_OR_STRINGS})
"""Messages whose JSON is a JSONSchemaProps or a simpler value."""

OPAQUE = FREE_FORM | UNIONS | {QUANTITY, TIME, MICRO_TIME, DURATION, INT_OR_STRING}
"""Messages with a JSON form of their own: their fields describe only the protobuf form."""


class Field(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One field of a message.

    Attributes:
        name: the name in JSON; may be empty for an `inline` field.
        type: a scalar (SCALARS) or the name of a message; for a list or map, the type of its elements.
        number: the protobuf field number; 0 if the message has no protobuf form.
        repeated, map: whether it is a list, a map from strings.
        inline: whether the fields of `type` are fields of the parent in JSON.
        pointer: whether absent and zero differ (they do for `minReplicas`, not for `hostNetwork`).
        omitempty, omitzero: Go's tags: whether an empty value is left out of JSON.
        go_type: the type as Go prints it in errors; empty if it is `type`.
        required, default, list_type, list_map_keys, map_type, enum: those of the OpenAPI schema.
        patch_strategy, patch_merge_key: those of strategic merge patches.
    """

    name: str
    type: str
    number: int = 0
    repeated: bool = False
    map: bool = False
    inline: bool = False
    pointer: bool = False
    omitempty: bool = msgspec.field(default=False, name="omitempty")
    omitzero: bool = msgspec.field(default=False, name="omitzero")
    go_type: str = ""
    required: bool = False
    default: Any = None
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    map_type: str = ""
    patch_strategy: str = ""
    patch_merge_key: str = ""
    enum: tuple[str, ...] = ()

    @property
    def is_scalar(self) -> bool:
        """Whether a value (or element) is a scalar rather than a message."""
        return self.type in SCALARS

    @property
    def is_object(self) -> bool:
        """Whether a value (or element) is a JSON object with the fields of the message `type`."""
        return not (self.is_scalar or self.type in OPAQUE or get_message(self.type).list)

    @property
    def element_go_type(self) -> str:
        """The Go type of one element of a list or map (of a plain field: its own)."""
        if self.type not in SCALARS:
            return go_name(self.type)
        go_type = self.go_type or self.type
        if self.repeated or self.map:
            _, bracket, element = go_type.partition("]")
            go_type = element.removeprefix("*") if bracket else self.type
        return "[]uint8" if go_type == "bytes" else go_type


class Message(msgspec.Struct, frozen=True, rename="camel"):
    """One message of the API.

    Attributes:
        fields: in the order of the Go struct; of a `list` message the one field `items`.
        type_meta: whether it has `apiVersion` and `kind`, which are not among `fields`.
        list: whether its JSON form is a plain list of strings.
        map_type: `atomic` where server-side apply replaces it as a whole.
        name: `apps/v1.Deployment`.
    """

    fields: tuple[Field, ...]
    type_meta: bool = False
    list: bool = False
    map_type: str = ""
    name: str = ""

    @property
    def package(self) -> str:
        """`apps/v1` of `apps/v1.Deployment`."""
        return self.name.rpartition(".")[0]

    @property
    def short_name(self) -> str:
        """`Deployment` of `apps/v1.Deployment`."""
        return self.name.rpartition(".")[2]

    def json_fields(self) -> Iterator[Field]:
        """The fields of this message's JSON form: its own, with the fields of each inlined message in its place."""
        for field in self.fields:
            if field.inline:
                yield from get_message(field.type).json_fields()
            else:
                yield field


class _Package(msgspec.Struct):
    """One file of facts.

    Attributes:
        package: the path of the Go package: `k8s.io/api/apps/v1`.
        messages: short name (`Deployment`) -> message.
    """

    package: str
    messages: dict[str, Message]


def _find_package(prefix: str) -> _Package | None:
    """The package; None if it has no file. Prefixes may come from clients, so only existing ones are cached."""
    return _load_package(prefix) if prefix in _package_prefixes() else None


@cache
def _package_prefixes() -> frozenset[str]:
    """The prefixes (`apps/v1`) of all packages that have a file."""
    files = (resources.files("podscaler.api.schema.data") / "types").iterdir()
    return frozenset("/".join(file.name.removesuffix(".json").rsplit("_", 1)) for file in files)


@cache
def _load_package(prefix: str) -> _Package:
    """The facts of a package; each message gets its full name."""
    file = resources.files("podscaler.api.schema.data") / "types" / f"{prefix.replace('/', '_')}.json"
    package = msgspec.json.decode(file.read_bytes(), type=_Package)
    for short_name, message in package.messages.items():
        package.messages[short_name] = msgspec.structs.replace(message, name=f"{prefix}.{short_name}")
    return package


def find_message(name: str) -> Message | None:
    """The message of that name (`core/v1.Pod`); None for an unknown name."""
    prefix, _, short_name = name.rpartition(".")
    package = _find_package(prefix)
    return package.messages.get(short_name) if package else None


def get_message(name: str) -> Message:
    """The message of that name (`core/v1.Pod`). Raises KeyError for an unknown name."""
    message = find_message(name)
    if message is None:
        raise KeyError(name)
    return message


def messages_of(prefix: str) -> tuple[Message, ...]:
    """All messages of a package (`apps/v1`), by name. Raises KeyError for an unknown prefix."""
    package = _find_package(prefix)
    if package is None:
        raise KeyError(prefix)
    return tuple(package.messages.values())


_PACKAGE_BY_GROUP = {"custom.metrics.k8s.io": "custom_metrics", "external.metrics.k8s.io": "external_metrics"}
"""API group -> the Go package of its types, where that is not the first label of the group."""
_BUILT_IN_DOMAIN = ".k8s.io"
"""The end of the names of built-in groups with a domain; other domains are those of custom resources."""
_OPTIONS_KINDS = frozenset(f"{verb}Options" for verb in ("Create", "Delete", "Get", "List", "Patch", "Update"))


def find_kind(api_version: str, kind: str) -> str | None:
    """The name of the message of a kind: `apps/v1.Deployment` for `apps/v1` and `Deployment`; None for an unknown one.

    The kinds of options (DeleteOptions, ...) exist in every group.
    """
    group, _, version = api_version.rpartition("/")
    if "." in group and not group.endswith(_BUILT_IN_DOMAIN):
        return None
    name = f"{_package_of_group(group)}/{version}.{kind}"
    is_missing_in_core = not group and find_message(name) is None  # meta/v1.Status has the apiVersion v1, too
    if kind in _OPTIONS_KINDS or is_missing_in_core:
        name = f"meta/v1.{kind}"
    return name if find_message(name) else None


def _package_of_group(group: str) -> str:
    """The Go package of a built-in group, without its version: `apps`; `core` for the empty group."""
    return _PACKAGE_BY_GROUP.get(group) or group.removesuffix(_BUILT_IN_DOMAIN).partition(".")[0] or "core"


@lru_cache(maxsize=8192)
def find_field(message: str, name: str) -> Field | None:
    """The field with that JSON name, of the message or of one inlined into it; None for unknown names."""
    message_type = find_message(message)
    return next((field for field in message_type.json_fields() if field.name == name), None) if message_type else None


def go_package(prefix: str) -> str:
    """The Go package path of `apps/v1`: `k8s.io/api/apps/v1`. Raises KeyError for an unknown prefix."""
    package = _find_package(prefix)
    if package is None:
        raise KeyError(prefix)
    return package.package


def go_name(message: str) -> str:
    """A message as Go prints its type: `v1.Deployment`."""
    return message.rpartition("/")[2]


def reachable(names: Iterable[str]) -> set[str]:
    """The names of the given messages and of all messages to which they refer, directly or not. Raises KeyError."""
    reachable_names: set[str] = set()
    pending_names = list(names)
    while pending_names:
        name = pending_names.pop()
        if name in reachable_names:
            continue
        reachable_names.add(name)
        pending_names.extend(field.type for field in get_message(name).fields if not field.is_scalar)
    return reachable_names
