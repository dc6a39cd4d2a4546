"""Resource definition of ConfigMap (core/v1), and the checks of keys, size and immutability that Secrets share.

CONFIG_MAP, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new map of data: a check in `validate`, and its keys in the cell of
DATA_COLUMN.

Source: recorded responses (tests/conformance/golden); the API reference of core/v1.
"""

from podscaler.api.machinery.field import FieldError, forbidden, invalid, too_long
from podscaler.api.resource import checks, references, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

MAX_BYTES = 1024 * 1024
"""The largest sum of the sizes of the values of a ConfigMap or Secret."""

DATA_COLUMN = Column("Data", description="Number of its keys.")


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a ConfigMap to be stored: keys, keys in both maps, size, changes of an immutable one."""
    data, binary_data = new.get("data") or {}, new.get("binaryData") or {}
    errors = key_errors(data, "data")
    errors += key_errors(binary_data, "binaryData")
    repeated_keys = sorted(set(data) & set(binary_data))
    errors += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in repeated_keys]
    size_bytes = sum(len(value.encode()) for value in data.values()) + sum(
        map(decoded_size_bytes, binary_data.values())
    )
    if size_bytes > MAX_BYTES:
        errors.append(too_long("", MAX_BYTES))  # of the whole object, as upstream
    return errors + immutable_errors(new, old, "data", "binaryData")


def key_errors(data: Object, path: str) -> list[FieldError]:
    """The field errors of the keys of the map at `path`."""
    return [
        error
        for key in sorted(data)
        for error in checks.well_formed(key, f"{path}[{key}]", references.config_key_messages)
    ]


def decoded_size_bytes(encoded: str) -> int:
    """The number of bytes that a base64 text without line breaks decodes to."""
    return len(encoded) * 3 // 4 - encoded.count("=")


def immutable_errors(new: Object, old: Object | None, *fields: str) -> list[FieldError]:
    """The field errors of changed `fields` of an object that is stored with `immutable: true`."""
    if old is None or not old.get("immutable"):
        return []
    message = "field is immutable when `immutable` is set"
    errors = [] if new.get("immutable") else [forbidden("immutable", message)]
    return errors + [forbidden(field, message) for field in fields if (new.get(field) or {}) != (old.get(field) or {})]


CONFIG_MAP = Resource(
    group="",
    plural="configmaps",
    kind="ConfigMap",
    versions=(Version("v1", "core/v1.ConfigMap"),),
    short_names=("cm",),
    strategy=Strategy(validate=validate),
    printer=tables.named(
        "config map",
        DATA_COLUMN,
        cells=lambda config_map, _now_ns: [len(config_map.get("data") or {}) + len(config_map.get("binaryData") or {})],
    ),
)
