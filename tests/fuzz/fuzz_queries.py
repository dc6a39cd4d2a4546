"""Query parameters and headers, right and wrong.

Called by the tests of this folder. All choices come from a random.Random.
"""

import base64
import json
import random

from fuzz_objects import TEXTS

_NUMBERS = ("0", "1", "5", "-1", "", "x", "1.5", "+3", "9223372036854775807", "9223372036854775808", "٣", "1e3", " 1")
_BOOLEANS = ("true", "false", "1", "0", "", "x", "True", "TRUE")
_SELECTORS = (
    "a=b",
    "a in (b,c),!d",
    "a notin ()",
    "a,",
    "a=b=c",
    "(",
    "a>1",
    "a<x",
    "=",
    "!",
    "a in b",
    "a!=b,a==c",
    "x/y/z=1",
    "a in (",
    ",,",
    "é=1",
)
_FIELDS = (
    "metadata.name=fuzz",
    "metadata.namespace!=x",
    "status.phase=Running",
    "spec.nodeName=",
    "nope=1",
    "a",
    "=,=",
    "metadata.name=a\\,b",
    "metadata.name=\\",
    "spec.mode=a",
)
_DRY_RUNS = ("All", "", "x")


def _token(start: str, resource_version: int) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": resource_version, "start": start})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


_CONTINUE = (
    "x",
    "",
    _token("fuzz\u0000", 5),
    _token("../x\u0000", 10**30),
    _token("", -1),
    "eyJ",
    "====",
    "bnVsbA",
    "W10",
    "e30",
)
_VERSIONS = ("0", "1", "", "-1", "x", "99999999999", "18446744073709551616", "1.5", "00")
_KNOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "GET": {
        "limit": _NUMBERS,
        "continue": _CONTINUE,
        "labelSelector": _SELECTORS,
        "fieldSelector": _FIELDS,
        "resourceVersion": _VERSIONS,
        "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
        "timeoutSeconds": ("0", "1", "-1", "x", "9223372036854775807"),
        "watch": _BOOLEANS,
        "allowWatchBookmarks": _BOOLEANS,
        "sendInitialEvents": _BOOLEANS,
        "pretty": _BOOLEANS,
        "timeout": ("1s", "x", "", "-1s", "9999999999h", "1"),
        "includeObject": ("None", "Metadata", "Object", "x"),
        "container": ("c", "x", ""),
        "command": ("sh", "", "\x00"),
        "stdin": _BOOLEANS,
        "tty": _BOOLEANS,
        "stdout": _BOOLEANS,
        "ports": _NUMBERS,
        "tailLines": _NUMBERS,
        "limitBytes": _NUMBERS,
        "sinceSeconds": _NUMBERS,
        "sinceTime": ("2026-01-01T00:00:00Z", "x", ""),
        "previous": _BOOLEANS,
        "timestamps": _BOOLEANS,
        "stream": ("All", "Stdout", "x", ""),
        "metricLabelSelector": _SELECTORS,
    },
    "POST": {
        "dryRun": _DRY_RUNS,
        "fieldManager": ("a", "", "x" * 200, "\x00", "é"),
        "fieldValidation": ("Strict", "Warn", "Ignore", "", "x"),
    },
    "DELETE": {
        "dryRun": _DRY_RUNS,
        "gracePeriodSeconds": _NUMBERS,
        "propagationPolicy": ("Foreground", "Background", "Orphan", "x", ""),
        "orphanDependents": _BOOLEANS,
        "labelSelector": _SELECTORS,
        "fieldSelector": _FIELDS,
        "limit": _NUMBERS,
        "continue": _CONTINUE,
        "resourceVersion": _VERSIONS,
    },
}
_KNOWN["PUT"] = _KNOWN["POST"]
_KNOWN["PATCH"] = {**_KNOWN["POST"], "fieldManager": ("a", "a", "b", ""), "force": _BOOLEANS}

_ACCEPT = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
    "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=x;v=v1;g=meta.k8s.io",
    "application/json;stream=watch",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    "application/json;q=nan,*/*;q=inf",
    "application/json;q=-1",
    "text/html,image/*;q=0.8",
    "a" * 5000,
    ",;,;=",
    "",
)
_OTHERS: tuple[tuple[str, str], ...] = (
    ("If-None-Match", '"x"'),
    ("If-None-Match", "*"),
    ("If-Modified-Since", "x"),
    ("Range", "bytes=0-1"),
    ("Expect", "100-continue"),
    ("Expect", "x"),
    ("Accept-Encoding", "gzip;q=0, x"),
    ("Accept-Encoding", "gzip"),
    ("User-Agent", "curl/8"),
    ("User-Agent", "\u00ff\u2028"),
    ("Impersonate-User", "reader"),
    ("Impersonate-User", ""),
    ("Impersonate-User", "system:serviceaccount:default:default"),
    ("Impersonate-User", "system:serviceaccount:..:"),
    ("Impersonate-Group", "readers"),
    ("Impersonate-Uid", "5"),
    ("Impersonate-Extra-a%2fb%zz", "x"),
    ("Impersonate-Extra-", ""),
    ("Upgrade", "websocket"),
    ("Upgrade", "SPDY/3.1"),
    ("Upgrade", "h2c"),
    ("Connection", "Upgrade"),
    ("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.eA, v4.channel.k8s.io"),
    ("Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io.====, x"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("X-Stream-Protocol-Version", "v4.channel.k8s.io"),
    ("X-Forwarded-For", "x"),
    ("Audit-ID", "x" * 300),
    ("Origin", "null"),
    ("Cookie", 'a="b\\'),
)


def query(rng: random.Random, method: str) -> list[tuple[str, str]]:
    """Parameters that the method may have, some of them twice, and some that nobody knows."""
    known = _KNOWN[method]
    pairs = []
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2, 4))):
        name = rng.choice(list(known))
        values = known[name]
        pairs.append((name, rng.choice(values) if rng.random() < 0.9 else rng.choice(TEXTS)[:300]))
    if rng.random() < 0.03:
        pairs.append((rng.choice(TEXTS)[:300], rng.choice(TEXTS)[:300]))
    return [(_text(name), _text(value)) for name, value in pairs]


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()


def headers(rng: random.Random) -> dict[str, str]:
    """Headers besides those of the body."""
    found = {"Accept": rng.choice(_ACCEPT)} if rng.random() < 0.4 else {}
    for _ in range(rng.choice((0,) * 8 + (1, 1, 4))):
        name, value = rng.choice(_OTHERS)
        found[name] = value
    return found
