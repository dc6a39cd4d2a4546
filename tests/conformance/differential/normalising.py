"""An answer of a real API server as a pattern that other servers' answers can be compared with.

Called by `record`. What differs from run to run becomes a placeholder; tests/conformance/golden/README.md lists them.
Numbered placeholders count in the order of first appearance within a case.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from case_times import ServerTimes

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
OBJECT_IN_TEXT = re.compile(r'Invalid value: "\{(?:[^"\\]|\\.)*\}"')
VERSION_IN_TEXT = re.compile(r"(resource version: |in record \()\d+( \(\d+\))?")
SERVICE_ADDRESS = re.compile(r"\b10\.0\.0\.\d+\b(?!/)")
"""Of the range from which the recorded server gives addresses to Services."""
NODE_PORT_IN_TEXT = re.compile(r"\b(\d+:)3\d{4}(/(?:TCP|UDP|SCTP))")
CURRENT_IN_TEXT = re.compile(r"(, current: )\d+")
DURATION = re.compile(r"(?:\d+[ydhms])+")
SUFFIX = r"[bcdfghjklmnpqrstvwxz2456789]{5}"
AGES = frozenset({"Age", "Last Seen", "First Seen", "Duration", "Created At"})
DROPPED = frozenset({"managedFields", "storageVersionHash", "serverAddressByClientCIDRs"})
"""What differs between servers, or is told elsewhere."""


@dataclass
class Normaliser:
    """Turns the answers of one case, whose requests hold `times.given`, into patterns."""

    ident: str
    times: ServerTimes
    prefixes: set[str] = field(default_factory=set)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def note(self, body: Any) -> None:
        """Remember what names will be made of, if the request's body asks for generated ones."""
        metadata = body.get("metadata") if isinstance(body, dict) else None
        prefix = metadata.get("generateName") if isinstance(metadata, dict) else None
        if isinstance(prefix, str) and prefix:
            self.prefixes.add(prefix)

    def pattern(self, value: Any, *, in_list: bool = False) -> Any:
        """The pattern of an answer's body, or a part of one."""
        if isinstance(value, dict):
            return self._object(value, in_list=in_list)
        if isinstance(value, list):
            return [self.pattern(item) for item in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, value: str) -> str:
        """The pattern of a text."""
        value = value.replace(f"ns-{self.ident}", "{ns}").replace(self.ident, "{id}")
        value = UUID.sub(lambda found: self._numbered("uid", found[0]), value)
        for prefix in self.prefixes:
            kept = prefix.replace(self.ident, "{id}")
            value = re.sub(f"{re.escape(kept)}{SUFFIX}\\b", f"{kept}<generated>", value)
        value = self.times.hidden(value)
        value = OBJECT_IN_TEXT.sub('Invalid value: "<object>"', value)
        value = CURRENT_IN_TEXT.sub(r"\1<rv>", VERSION_IN_TEXT.sub(r"\1<rv>", value))
        value = NODE_PORT_IN_TEXT.sub(r"\1<nodePort>\2", SERVICE_ADDRESS.sub("<ip>", value))
        value = re.sub(r'(?m)^(\s*resourceVersion: )"\d+"', r'\1"<rv>"', value)
        return re.sub(r"hash=[0-9A-Z]{16,}", "hash=<hash>", value)

    def _object(self, value: dict[str, Any], *, in_list: bool) -> dict[str, Any]:
        is_list = ("items" in value or "rows" in value) and isinstance(value.get("metadata"), dict)
        is_bookmark = value.get("type") == "BOOKMARK"
        out = {
            key: self._field(key, item, in_list=is_list or is_bookmark or (in_list and key == "metadata"))
            if key != "resourceVersion"
            else self._version(item, in_list=in_list)
            for key, item in value.items()
            if key not in DROPPED
        }
        if "columnDefinitions" in value:
            _tidy_table(out)
        return out

    def _field(self, key: str, item: Any, *, in_list: bool) -> Any:
        if key == "continue" and item:
            return "<continue>"
        if key == "clusterIP" and isinstance(item, str) and item[:1].isdigit():
            return "<ip>"
        if key == "clusterIPs":
            return ["<ip>" if str(each)[:1].isdigit() else each for each in item]
        if key in ("nodePort", "healthCheckNodePort"):
            return "<nodePort>"
        nested = key in ("metadata", "object") and in_list
        return self.pattern(item, in_list=nested)

    def _version(self, item: Any, *, in_list: bool) -> Any:
        if not (isinstance(item, str) and item.isdigit() and item != "0"):
            return item
        return "<rv>" if in_list else self._numbered("rv", item)

    def _numbered(self, kind: str, value: str) -> str:
        number = self.numbers.setdefault((kind, value), 1 + sum(1 for known, _ in self.numbers if known == kind))
        return f"<{kind}:{number}>"


def _tidy_table(table: dict[str, Any]) -> None:
    """Hide ages, and leave out descriptions, which are other people's words."""
    for column in table.get("columnDefinitions") or []:
        column.pop("description", None)
    names = [column.get("name") for column in table.get("columnDefinitions") or []]
    for row in table.get("rows") or []:
        cells = row.get("cells") or []
        for index, cell in enumerate(cells):
            is_age = not names or names[index] in AGES  # only the first event of a watch has definitions
            if is_age and isinstance(cell, str) and DURATION.fullmatch(cell):
                cells[index] = "<age>"
