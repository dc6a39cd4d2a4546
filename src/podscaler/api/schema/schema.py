"""The one table of facts about the Kubernetes API types, from which decoding, protobuf, OpenAPI and merging are made.

The only source of facts about types for decoding, canonical, protobuf, openapi and merge_keys. Messages are named
`apps/v1.Deployment`: the last two parts of the Go package, then the type.

Invariants: files are read once, one per Go package, when a message of that package is first needed (about 1 ms for
core/v1; `preload` does it ahead of time); records are immutable; fields stand in the order of the Go struct, which is
the order of JSON output; names that clients make up cost no memory.

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
"""Messages whose JSON is whatever the client wrote."""

UNIONS = frozenset({SCHEMA_OR_ARRAY, SCHEMA_OR_BOOL, SCHEMA_OR_STRINGS})
"""Messages that are a schema or something simpler."""

OPAQUE = FREE_FORM | UNIONS | {QUANTITY, TIME, MICRO_TIME, DURATION, INT_OR_STRING}
"""Messages with a JSON form of their own: their fields describe only the protobuf form."""


class Field(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One field of a message.

    Attributes:
        name: in JSON; of an `inline` field only protobuf uses it (and it may be empty there).
        type: a scalar (`SCALARS`) or the name of a message; of a list or map, that of its elements.
        number: in protobuf; 0 where the message has no protobuf form.
        repeated, map: a list, a map from strings.
        inline: the fields of `type` stand in the parent's JSON.
        pointer: absent and zero differ (`minReplicas: 0` means something, `hostNetwork: false` does not).
        omitempty, omitzero: Go's tags: whether an empty value is left out of JSON.
        go_type: as Go prints it in errors; empty where it is `type`.
        required, default, list_type, list_map_keys, map_type, enum: as OpenAPI says them.
        patch_strategy, patch_merge_key: for strategic merge patches.
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
        fields: in the order of the Go struct; for `list` the one field `items`.
        type_meta: whether it has `apiVersion` and `kind`.
        list: its JSON form is a plain list of strings.
        map_type: `atomic` where server-side apply must replace it as a whole.
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
        """The fields that stand in this message's JSON: its own, with those of inlined messages in their place."""
        for field in self.fields:
            if field.inline:
                yield from get_message(field.type).json_fields()
            else:
                yield field


class _Package(msgspec.Struct):
    package: str
    messages: dict[str, Message]


def _package(prefix: str) -> _Package | None:
    """The package, None where there is no file of it; prefixes may come from clients, so only real ones are kept."""
    return _loaded(prefix) if prefix in _prefixes() else None


@cache
def _prefixes() -> frozenset[str]:
    files = (resources.files("podscaler.api.schema.data") / "types").iterdir()
    return frozenset("/".join(file.name.removesuffix(".json").rsplit("_", 1)) for file in files)


@cache
def _loaded(prefix: str) -> _Package:
    file = resources.files("podscaler.api.schema.data") / "types" / f"{prefix.replace('/', '_')}.json"
    loaded = msgspec.json.decode(file.read_bytes(), type=_Package)
    for short_name, message in loaded.messages.items():
        loaded.messages[short_name] = msgspec.structs.replace(message, name=f"{prefix}.{short_name}")
    return loaded


def find_message(name: str) -> Message | None:
    """The message of that name (`core/v1.Pod`), None where the facts have none."""
    prefix, _, short_name = name.rpartition(".")
    package = _package(prefix)
    return package.messages.get(short_name) if package else None


def get_message(name: str) -> Message:
    """The message of that name (`core/v1.Pod`). Raises KeyError where the facts have none."""
    message = find_message(name)
    if message is None:
        raise KeyError(name)
    return message


def messages_of(prefix: str) -> tuple[Message, ...]:
    """All messages of a package (`apps/v1`), by name. Raises KeyError for an unknown prefix."""
    package = _package(prefix)
    if package is None:
        raise KeyError(prefix)
    return tuple(package.messages.values())


_PACKAGES = {"custom.metrics.k8s.io": "custom_metrics", "external.metrics.k8s.io": "external_metrics"}
_OWN_DOMAIN = ".k8s.io"
"""What the groups that have one end with; other domains are those of custom resources."""
_OPTIONS = frozenset({"CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions"})


def find_kind(api_version: str, kind: str) -> str | None:
    """The message of a kind as clients name it (`apps/v1`, `Deployment`), None where the facts have none.

    The options kinds exist in every group.
    """
    group, _, version = api_version.rpartition("/")
    package = _PACKAGES.get(group) or group.removesuffix(_OWN_DOMAIN).partition(".")[0] or "core"
    if "." in group and not group.endswith(_OWN_DOMAIN):
        return None
    if kind in _OPTIONS or (not group and find_message(f"core/{version}.{kind}") is None):
        package, version = "meta", "v1"
    name = f"{package}/{version}.{kind}"
    return name if find_message(name) else None


@lru_cache(maxsize=8192)
def find_field(message: str, name: str) -> Field | None:
    """The field with that JSON name (in the message itself or inlined into it), None where there is none."""
    known = find_message(message)
    return next((field for field in known.json_fields() if field.name == name), None) if known else None


def go_package(prefix: str) -> str:
    """The Go package path of `apps/v1`: `k8s.io/api/apps/v1`. Raises KeyError for an unknown prefix."""
    package = _package(prefix)
    if package is None:
        raise KeyError(prefix)
    return package.package


def go_name(message: str) -> str:
    """A message as Go prints its type: `v1.Deployment`."""
    return message.rpartition("/")[2]


def reachable(names: Iterable[str]) -> set[str]:
    """The names of the given messages and of all that they refer to, inlined ones included."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting.extend(field.type for field in get_message(name).fields if not field.is_scalar)
    return found


def preload(names: Iterable[str]) -> None:
    """Read the files that these messages need now, so that no request pays for it."""
    reachable(names)
