"""The records of ConfigMap and Secret (core/v1): maps from keys to text or bytes.

Source: golden captures; the API reference of core/v1.
"""

import base64
from typing import Any

from podscaler.api.kinds.core import key_pairs
from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, forbidden, invalid, required, too_long
from podscaler.api.resource import config_key
from podscaler.api.resource.resources import Column, Object, Printer, Resource, Strategy, Version

MAX_BYTES = 1024 * 1024

_TLS = "kubernetes.io/tls"
_KEYS_BY_TYPE = {
    _TLS: ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
"""What a Secret of such a type must hold."""
_OF_ACCOUNT = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"


def config_map_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a ConfigMap to be stored: keys, double keys, size, changes of an immutable one."""
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    found = _key_faults(data, "data")
    found += _key_faults(binary, "binaryData")
    twice = sorted(set(data) & set(binary))
    found += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in twice]
    size_bytes = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_bytes, binary.values()))
    if size_bytes > MAX_BYTES:
        found.append(too_long("", MAX_BYTES))
    return found + _immutable_faults(new, old, "data", "binaryData")


def secret_faults(new: Object, old: Object | None) -> list[FieldError]:
    """What is wrong with a Secret to be stored: keys, size, keys that its type demands, changes of an immutable one."""
    data = new.get("data") or {}
    found = _key_faults(data, "data")
    if sum(map(_decoded_bytes, data.values())) > MAX_BYTES:
        found.append(too_long("data", MAX_BYTES))
    kind = new.get("type", "")
    found += [required(f"data[{key}]") for key in _KEYS_BY_TYPE.get(kind, ()) if key not in data]
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        found += [required("data[username]"), required("data[password]")]
    if kind == _OF_ACCOUNT and not (new["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME):
        found.append(required(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    if old is not None and kind != old.get("type", ""):
        found.append(invalid("type", kind, "field is immutable"))
    return found + _immutable_faults(new, old, "data")


def _secret_warnings(new: Object, old: Object | None) -> list[str]:
    """What the writer of a Secret is told: a key pair that no TLS server could use."""
    del old
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


def _key_faults(data: Object, path: str) -> list[FieldError]:
    found = []
    for key in sorted(data):
        found += [invalid(f"{path}[{key}]", key, text) for text in config_key.faults(key)]
    return found


def _decoded_bytes(encoded: str) -> int:
    return len(encoded) * 3 // 4 - encoded.count("=")


def _immutable_faults(new: Object, old: Object | None, *parts: str) -> list[FieldError]:
    if old is None or not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [forbidden("immutable", "field is immutable when `immutable` is set")]
    for part in parts:
        if (new.get(part) or {}) != (old.get(part) or {}):
            found.append(forbidden(part, "field is immutable when `immutable` is set"))
    return found


def _config_map_row(config_map: Object, now_ns: int) -> list[Any]:
    count = len(config_map.get("data") or {}) + len(config_map.get("binaryData") or {})
    return [config_map["metadata"].get("name", ""), count, printing.created_age(config_map, now_ns)]


def _secret_row(secret: Object, now_ns: int) -> list[Any]:
    name, count = secret["metadata"].get("name", ""), len(secret.get("data") or {})
    return [name, secret.get("type", ""), count, printing.created_age(secret, now_ns)]


CONFIG_MAP = Resource(
    group="",
    plural="configmaps",
    singular="configmap",
    kind="ConfigMap",
    versions=(Version("v1", "core/v1.ConfigMap"),),
    storage_version="v1",
    short_names=("cm",),
    strategy=Strategy(validate=config_map_faults),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the config map, unique within its namespace."),
            Column("Data", description="Number of its keys."),
            Column("Age", description="Time since the config map was created."),
        ),
        row=_config_map_row,
    ),
)

SECRET = Resource(
    group="",
    plural="secrets",
    singular="secret",
    kind="Secret",
    versions=(Version("v1", "core/v1.Secret", default=fill_secret),),
    storage_version="v1",
    fields=lambda secret: {"type": secret.get("type", "")},
    strategy=Strategy(validate=secret_faults, warnings=_secret_warnings),
    printer=Printer(
        columns=(
            Column("Name", format="name", description="Name of the secret, unique within its namespace."),
            Column("Type", description="What the secret is for."),
            Column("Data", description="Number of its keys."),
            Column("Age", description="Time since the secret was created."),
        ),
        row=_secret_row,
    ),
)
