"""The records of ConfigMap and Secret (core/v1): maps from keys to text or bytes.

Source: golden captures; the API reference of core/v1.
"""

import base64

from podscaler.api.kinds.core import key_pairs
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required, too_long
from podscaler.api.resource import checks, references, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

MAX_BYTES = 1024 * 1024

_TLS = "kubernetes.io/tls"
_KEYS_BY_TYPE = {
    _TLS: ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
"""The keys that a Secret of a type must have."""
_OF_ACCOUNT = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"


def validate_config_map(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a ConfigMap to be stored: keys, double keys, size, changes of an immutable one."""
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    found = _key_errors(data, "data")
    found += _key_errors(binary, "binaryData")
    twice = sorted(set(data) & set(binary))
    found += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in twice]
    size_bytes = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_bytes, binary.values()))
    if size_bytes > MAX_BYTES:
        found.append(too_long("", MAX_BYTES))
    return found + _immutable_errors(new, old, "data", "binaryData")


def validate_secret(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a Secret to be stored: keys, size, keys that its type requires, immutability."""
    data = new.get("data") or {}
    found = _key_errors(data, "data")
    if sum(map(_decoded_bytes, data.values())) > MAX_BYTES:
        found.append(too_long("data", MAX_BYTES))
    kind = new.get("type", "")
    found += [required(f"data[{key}]") for key in _KEYS_BY_TYPE.get(kind, ()) if key not in data]
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        found += [required("data[username]"), required("data[password]")]
    if kind == _OF_ACCOUNT and not (new["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME):
        found.append(required(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    found += [] if old is None else checks.unchanged(kind, old.get("type", ""), "type")
    return found + _immutable_errors(new, old, "data")


def _secret_warnings(new: Object, _old: Object | None) -> list[str]:
    """The warning about a key pair that no TLS server could use."""
    if new.get("type") != _TLS:
        return []
    certificate, key = (_bytes((new.get("data") or {}).get(name)) for name in _KEYS_BY_TYPE[_TLS])
    fault = key_pairs.fault(certificate, key)
    return [fault] if fault else []


def _bytes(encoded: str | None) -> bytes:
    return base64.b64decode(encoded or "")


def fill_secret(secret: Object) -> None:
    """The type, and `stringData` moved to `data`, in place."""
    if not secret.get("type"):
        secret["type"] = "Opaque"
    if texts := secret.pop("stringData", None):
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _key_errors(data: Object, path: str) -> list[FieldError]:
    keys = ((key, f"{path}[{key}]") for key in sorted(data))
    return [error for key, place in keys for error in checks.well_formed(key, place, references.config_key_messages)]


def _decoded_bytes(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded.count("=")


def _immutable_errors(new: Object, old: Object | None, *parts: str) -> list[FieldError]:
    if old is None or not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [forbidden("immutable", "field is immutable when `immutable` is set")]
    for part in parts:
        if (new.get(part) or {}) != (old.get(part) or {}):
            found.append(forbidden(part, "field is immutable when `immutable` is set"))
    return found


_DATA = Column("Data", description="Number of its keys.")

CONFIG_MAP = Resource(
    group="",
    plural="configmaps",
    kind="ConfigMap",
    versions=(Version("v1", "core/v1.ConfigMap"),),
    short_names=("cm",),
    strategy=Strategy(validate=validate_config_map),
    printer=tables.named(
        "config map",
        _DATA,
        cells=lambda obj, _now_ns: [len(obj.get("data") or {}) + len(obj.get("binaryData") or {})],
    ),
)

SECRET = Resource(
    group="",
    plural="secrets",
    kind="Secret",
    versions=(Version("v1", "core/v1.Secret", default=fill_secret),),
    fields=lambda secret: {"type": secret.get("type", "")},
    strategy=Strategy(validate=validate_secret, warnings=_secret_warnings),
    printer=tables.named(
        "secret",
        Column("Type", description="What the secret is for."),
        _DATA,
        cells=lambda secret, _now_ns: [secret.get("type", ""), len(secret.get("data") or {})],
    ),
)
