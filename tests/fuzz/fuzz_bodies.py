"""Bodies in every content type: proper ones, and those in which single bytes are wrong.

Called by the tests of this folder. All choices come from a random.Random.
"""

import copy
import gzip
import json
import random
from typing import Any

from fuzz_objects import mutated

from podscaler.api.protobuf import protobuf
from podscaler.api.schema import schema
from podscaler.api.text import yaml_output

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = protobuf.MEDIA_TYPE
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
APPLY_CBOR = "application/apply-patch+cbor"
PATCHES = (JSON_PATCH, MERGE, STRATEGIC, APPLY)
ODD_TYPES = (
    "",
    "text/plain",
    "application/cbor",
    "multipart/form-data",
    "application/json; charset=latin-1",
    "a;b;c",
    ",",
    APPLY_CBOR,
)

_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)
GARBAGE: tuple[bytes, ...] = (
    b"",
    b" ",
    b"null",
    b"[]",
    b"{}",
    b"5",
    b'"x"',
    b"NaN",
    b'{"a": NaN}',
    b'{"a": Infinity, "a": -Infinity}',
    b'{"a": 1e999999}',
    b'{"kind":"Pod","kind":"Pod","metadata":{"name":"a","name":"b"}}',
    b'{"metadata": {"name": "\\ud800"}}',
    b'{"metadata": {"name": "\xff\xfe"}}',
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\x00}\x00",
    b"{" * 5000,
    b"[" * 200_000,
    b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    b'{"a": ' + b"9" * 200_000 + b"}",
    b'{"a": 1' + b"0" * 5000 + b"." + b"1" * 5000 + b"e-9999}",
    b"k8s\x00",
    b"k8s\x00\x0a\x00\x12\x00",
    b"k8s\x00\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"k8s\x00" + b"\x0b" * 2000,
    b"\x1f\x8b\x08\x00",
    _BOMB.encode(),
    b"a: &a\n  b: *a\n",
    b"? [a, b]\n: {c: d}\n",
    b"--- {}\n--- {}\n",
    b"!!python/object/apply:os.system ['true']",
    b"!!binary x\n",
    b"a: !!timestamp 99999-99-99\n",
    b"a: 2026-13-45\nb: 1_000\nc: 0o777\nd: 0x1g\ne: .inf\nf: .nan\ng: 1e400\n12: ~\n~: 1\ntrue: 2\n1.5: 3\n",
    b"%YAML 9.9\n---\na: b\n",
    b"%TAG ! x\n---\n!y a\n",
    b"a: [\n",
    b"a: 'b\n",
    b"\ta: b\n",
    b"a: |9\n x\n",
    b"a: \x00\n",
    b"<<: [1]\n",
    b"a: &x {<<: *x}\n",
    b"- " * 3000,
    b"*a",
    b"&a *a",
)


def encoded(rng: random.Random, value: Any, message: str = "") -> tuple[str, bytes]:
    """A content type, and the value in it (JSON where it has no other form)."""
    kind = rng.choice((JSON, JSON, JSON, YAML, PROTOBUF))
    try:
        if kind == YAML:
            return YAML, yaml_output.write(value, sort_keys=False)
        if kind == PROTOBUF and message:
            return PROTOBUF, protobuf.encode(value, message)
    except Exception:  # the value is wrong on purpose: it has no form in this type
        return JSON, json_of(value)
    return JSON, json_of(value)


def json_of(value: Any) -> bytes:
    """JSON with what JSON does not have: NaN, numbers of any size, lone surrogates."""
    return json.dumps(value).encode()


def damaged(rng: random.Random, body: bytes) -> bytes:
    """A body with bytes changed, cut off, doubled or put in."""
    if not body:
        return rng.choice(GARBAGE)
    at = rng.randrange(len(body))
    match rng.randrange(6):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + bytes([rng.randrange(256)]) + body[at + 1 :]
        case 2:
            return body[:at] + rng.choice(GARBAGE)[:100] + body[at:]
        case 3:
            return body + body[at:]
        case 4:
            return body[:at] + body[at + rng.randrange(1, 9) :]
        case _:
            return rng.choice(GARBAGE)


def packed(rng: random.Random, body: bytes) -> tuple[dict[str, str], bytes]:
    """A body compressed, or that says so; whole or cut off."""
    whole = gzip.compress(body, 1)
    match rng.randrange(4):
        case 0:
            return {"Content-Encoding": "gzip"}, whole[: rng.randrange(len(whole))]
        case 1:
            return {"Content-Encoding": rng.choice(("gzip", "deflate", "br", "x", "gzip, gzip"))}, body
        case 2:
            return {"Content-Encoding": rng.choice(("deflate", "identity", "zstd"))}, whole
        case _:
            return {"Content-Encoding": "gzip"}, whole


def patch(rng: random.Random, obj: Any) -> tuple[str, bytes]:
    """A content type of patches, and a patch of it, or of another one."""
    kind = rng.choice(PATCHES)
    value: Any = _operations(rng, obj) if kind == JSON_PATCH else _partial(rng, obj, kind)
    if rng.random() < 0.15:
        value = mutated(rng, value)
    body = json_of(value)
    if rng.random() < 0.05:
        kind = rng.choice((*PATCHES, *ODD_TYPES))
    if rng.random() < 0.05:
        body = damaged(rng, body)
    return kind, body


def _partial(rng: random.Random, obj: Any, kind: str) -> Any:
    value = mutated(rng, obj)
    if not isinstance(value, dict):
        return value
    keep = {"apiVersion", "kind", "metadata"} if kind == APPLY else set()
    value = {key: part for key, part in value.items() if key in keep or rng.random() < 0.6}
    if kind == STRATEGIC:
        _direct(rng, value)
    return value


_DIRECTIVES: tuple[dict[str, Any], ...] = (
    {"$patch": "delete"},
    {"$patch": "replace"},
    {"$patch": "x"},
    {"$patch": 5},
    {"$retainKeys": ["a"]},
    {"$retainKeys": 5},
    {"$setElementOrder/containers": [{"name": "c"}]},
    {"$setElementOrder/containers": ["c"]},
    {"$setElementOrder/finalizers": ["a"]},
    {"$deleteFromPrimitiveList/finalizers": ["a"]},
    {"$deleteFromPrimitiveList/finalizers": 5},
    {"$deleteFromPrimitiveList/": []},
    {"$setElementOrder/": None},
)


def _direct(rng: random.Random, value: Any) -> None:
    """Put a directive of strategic merge patches somewhere into a patch."""
    while isinstance(value, dict):
        inner = [part for part in value.values() if isinstance(part, dict | list)]
        if not inner or rng.random() < 0.3:
            value.update(copy.deepcopy(rng.choice(_DIRECTIVES)))
            return
        value = rng.choice(inner)
        if isinstance(value, list):
            value.append(copy.deepcopy(rng.choice(_DIRECTIVES)))
            value = value[0]


_POINTERS = (
    "",
    "/",
    "/spec",
    "/spec/replicas",
    "/metadata/name",
    "/metadata/labels/a",
    "/a~1b~0c~2",
    "/spec/-",
    "/spec/containers/0",
)
_MORE_POINTERS = (
    "/spec/containers/-",
    "/spec/containers/99999999999999999999",
    "/spec/containers/-1",
    "/metadata/labels",
    "/status",
    "x",
    "//",
)
_OPS = ("add", "remove", "replace", "move", "copy", "test", "", "ADD", 5, None)


def _operations(rng: random.Random, obj: Any) -> Any:
    pointers = (*_POINTERS, *_MORE_POINTERS, *(f"/{key}" for key in obj))
    found = []
    for _ in range(rng.choice((1, 1, 2, 3, 60))):
        one = {"op": rng.choice(_OPS[:6] if rng.random() < 0.8 else _OPS), "path": rng.choice(pointers)}
        if rng.random() < 0.8:
            one["value"] = mutated(rng, obj) if rng.random() < 0.5 else rng.choice((None, 5, "x", [], {}))
        if rng.random() < 0.4:
            one["from"] = rng.choice(pointers)
        found.append(one)
    return found


def message_of(obj: Any) -> str:
    """The schema's name of an object's message, empty where there is none."""
    if not isinstance(obj, dict):
        return ""
    try:
        return schema.find_kind(obj.get("apiVersion", ""), obj.get("kind", "")) or ""
    except (AttributeError, TypeError):
        return ""
