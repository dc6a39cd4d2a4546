"""Whether an answer is what a golden capture says, placeholders and tolerances included.

Called by the replays of golden captures. The captured value is a pattern: `<rv:1>` matches any resourceVersion and must
match the same one everywhere in a case, `<time>` matches a time of today, and so on (see the README of golden/).
Objects may hold more than the pattern, lists may not.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

PLACEHOLDER = re.compile(r"<(rv|uid|time|age|generated|ip|addr|object|nodePort|hash|continue)(?::(\d+))?>")
SHAPES = {
    "rv": r"\d+(?: \(\d+\))?",
    "uid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
    "age": r"<unknown>|<invalid>|(?:\d+[ydhms])*",
    "generated": r"[bcdfghjklmnpqrstvwxz2456789]{5}",
    "ip": r"\d+\.\d+\.\d+\.\d+",
    "addr": r"127\.0\.0\.1:\d+",
    "object": r"\{(?:[^\"\\]|\\.)*\}",
    "nodePort": r"\d+",
    "hash": r"[0-9A-Z]{16,}",
    "continue": r".+",
}
NEVER_CAPTURED = frozenset({"managedFields", "storageVersionHash", "serverAddressByClientCIDRs", "description"})
ENDS_INITIAL = "k8s.io/initial-events-end"
_MANAGED_IN_YAML = re.compile(r"^  managedFields:\n(?:  [- ].*\n)+", re.MULTILINE)
"""The same in an object that is printed as YAML."""
_OBJECT_IN_TEXT = re.compile(r'"(?:<object>|\{(?:[^"\\]|\\.)*\})"')
"""An object, or a text in braces, that a field error prints; or the placeholder for one."""


class Difference(Exception):
    """The first place where an answer is not what was captured: `/spec/replicas: wanted 3, got 4`."""


class Matcher:
    """Compares the answers of one case, which share their numbered placeholders.

    Args:
        strict: whether objects may hold nothing besides what the pattern has.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self._bound: dict[tuple[str, str], str] = {}
        self._is_strict = strict

    def match(self, wanted: Any, got: Any, at: str = "", *, by_name: bool = False) -> None:
        """Raise Difference unless `got` is what `wanted` says; with `by_name`, lists are matched by their names."""
        if isinstance(wanted, dict):
            self._match_object(wanted, got, at, by_name)
        elif isinstance(wanted, list):
            self._match_list(wanted, got, at, by_name)
        elif isinstance(wanted, str):
            self._match_text(wanted, got, at)
        elif type(wanted) is not type(got) or wanted != got:
            raise _difference(at, wanted, got)

    def _match_object(self, wanted: dict[str, Any], got: Any, at: str, by_name: bool) -> None:
        if not isinstance(got, dict):
            raise _difference(at, wanted, got)
        causes = (wanted.get("details") or {}).get("causes") or []
        for key, value in wanted.items():
            if key not in got:
                raise _difference(f"{at}/{key}", value, "(absent)")
            if key == "message" and wanted.get("kind") == "Status" and len(causes) > 1:
                self.match(_parts(value), _parts(got[key]), f"{at}/{key}")
            elif key == "causes" and isinstance(got[key], list):
                self.match(_sorted(value), _sorted(got[key]), f"{at}/{key}")
            else:
                self.match(value, got[key], f"{at}/{key}", by_name=by_name)
        more = sorted(got.keys() - wanted.keys() - NEVER_CAPTURED) if self._is_strict else ()
        if more:
            raise _difference(f"{at}/{more[0]}", "(absent)", got[more[0]])

    def _match_list(self, wanted: list[Any], got: Any, at: str, by_name: bool) -> None:
        if not isinstance(got, list):
            raise _difference(at, wanted, got)
        if by_name:
            named = {_name(item): item for item in got}
            got = [named.get(_name(item), "(absent)") for item in wanted]
        elif len(wanted) != len(got):
            raise _difference(f"{at} (length)", len(wanted), len(got))
        for index, (one, other) in enumerate(zip(wanted, got, strict=True)):
            self.match(one, other, f"{at}/{index}", by_name=by_name)

    def _match_text(self, wanted: str, got: Any, at: str) -> None:
        if wanted == "<nodePort>" and isinstance(got, int):
            return
        if isinstance(got, str) and "managedFields" not in wanted:
            got = _MANAGED_IN_YAML.sub("", got)
        if wanted == got and "<" not in wanted:  # as most are
            return
        pattern, names = _pattern(wanted)
        found = pattern.fullmatch(got) if isinstance(got, str) else None
        if found is None:
            raise _difference(at, wanted, got)
        for (kind, number), value in zip(names, found.groups(), strict=True):
            if kind == "time" and not _is_today(value):
                raise _difference(at, wanted, got)
            if number and not self._bind(kind, number, value):
                raise _difference(f"{at} (another {kind} than before)", wanted, got)

    def _bind(self, kind: str, number: str, value: str) -> bool:
        """Whether the numbered placeholder may stand for `value`: equal numbers, equal values, and the reverse."""
        known = self._bound.setdefault((kind, number), value)
        others = (other for (k, n), other in self._bound.items() if k == kind and n != number)
        return known == value and value not in others


def _difference(at: str, wanted: Any, got: Any) -> Difference:
    return Difference(f"{at or '/'}: wanted {_short(wanted)}, got {_short(got)}")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) < 400 else f"{text[:400]}..."


def _pattern(wanted: str) -> tuple[re.Pattern[str], list[tuple[str, str]]]:
    """A regular expression for a captured text, and the placeholders that its groups stand for."""
    names: list[tuple[str, str]] = []
    parts: list[str] = []
    end = 0
    for found in PLACEHOLDER.finditer(wanted):
        names.append((found[1], found[2] or ""))
        parts += [re.escape(wanted[end : found.start()]), f"({SHAPES[found[1]]})"]
        end = found.end()
    return re.compile("".join((*parts, re.escape(wanted[end:]))), re.DOTALL), names


def _is_today(text: str) -> bool:
    then = datetime.fromisoformat(text) if text[0].isdigit() else parsedate_to_datetime(text)
    return abs((datetime.now(UTC) - then).total_seconds()) < 86_400


def _parts(message: str) -> list[str]:
    """A message as its sentences in a fixed order: upstream lists causes in any. A printed object is one part."""
    return sorted(re.split(r", |[\[\]]", _OBJECT_IN_TEXT.sub('"{}"', message)))


def _sorted(causes: list[Any]) -> list[Any]:
    return sorted(causes, key=lambda cause: json.dumps(cause, sort_keys=True))


def _name(item: Any) -> str:
    """What identifies an element of a list that is matched by name."""
    if not isinstance(item, dict):
        return json.dumps(item)
    metadata = item.get("metadata") or {}
    for key in ("name", "resource", "groupVersion", "subresource", "version"):
        if item.get(key) or metadata.get(key):
            return f"{key}={item.get(key) or metadata.get(key)}"
    return json.dumps(metadata) if "versions" in item else json.dumps(item, sort_keys=True)


def told_events(events: list[Any]) -> Iterator[Any]:
    """The events of a watch without the bookmarks that a server sends when it likes."""
    for event in events:
        metadata = event.get("object", {}).get("metadata") or {}
        if event.get("type") != "BOOKMARK" or ENDS_INITIAL in (metadata.get("annotations") or {}):
            yield event
