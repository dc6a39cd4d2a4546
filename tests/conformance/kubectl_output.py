"""Turns what kubectl printed into a form that does not depend on the run: names, times and addresses are hidden.

Called by `kubectl_session`, for a recording and for its replay alike, so that two servers can be compared line by line.
Equal numbers of `<uid:N>` are equal values within a case.
"""

import json
import re
from dataclasses import dataclass, field

from case_times import ServerTimes

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LOG_LINE = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d")
EXPLAINED = re.compile(
    r"^(GROUP|KIND|VERSION|RESOURCE|FIELDS?):.*|^\s+([\w$-]+\s*<[\w\[\]., ]+>( -required-)?|enum: .*)$"
)

RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\w{3}, \d\d \w{3} 20\d\d \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    (re.compile(r"(?m)^(Created on: +)20\d\d-\d\d-\d\d .*$"), r"\1<time>"),
    (re.compile(r"""(resourceVersion\\?"?: ?|Resource Version: +)(\\?"?)\d+(\\?"?)"""), r"\1\2<rv>\3"),
    (re.compile(r"(Expected resource version to be \S+, was )\d+"), r"\1<rv>"),
    (re.compile(r"(resource version: |in record )\(?\d+\)?( \(\d+\))?(, current: \d+)?"), r"\1<rv>"),
    (re.compile(r"(?<![\w.])10\.0\.0\.\d+(?![\d./])|(?<![\w.])127\.(?!0\.0\.1)\d+\.\d+\.\d+(?!/)"), "<ip>"),
    (re.compile(r"(nodePort\"?: |NodePort: .* |:)3\d{4}\b"), r"\1<nodePort>"),
    (re.compile(r"\S*/(LIVE|MERGED)-\d+/"), r"<tmp>/\1/"),
    (re.compile(r"(?m)^((?:---|\+\+\+) <tmp>/\S+)\s+\d{4}-\d\d-\d\d .*$"), r"\1 <time>"),
    (re.compile(r"\S*/kubectl-edit-\d+\.yaml"), "<tmp>/edit.yaml"),
    (re.compile(r"(?<=\D)eyJ[\w-]+\.[\w-]+\.[\w-]+|^eyJ[\w-]+\.[\w-]+\.[\w-]+"), "<token>"),
    (re.compile(r"hash=[0-9A-Z]{16,}"), "hash=<hash>"),
    (re.compile(r"(?m)(?:(?<=[ \t])|^)(?=\d)(\d+y)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(?=[ \t)]|$)"), "<age>"),
)


@dataclass
class Output:
    """Hides what differs between runs in the output of one case, whose names hold `ident`.

    Args:
        server: URL of the server.
        folder: of the case, whose path may be told.
        times: with the instants that the case gives.
    """

    ident: str
    server: str
    folder: str
    times: ServerTimes
    uids: dict[str, int] = field(default_factory=dict)

    def lines(self, text: str, shape: str = "") -> list[str]:
        """The lines with runs of blanks as one; `shape` is the step's.

        Of shapes, `explain` leaves only the fields (descriptions are other people's words), `sorted` has the lines in
        order, and `json` the members of objects that are shown as the server sent them.
        """
        found = [line for line in self._hidden(text).strip("\n").split("\n") if not LOG_LINE.match(line)]
        if shape == "json":
            return [_ordered(line) for line in found]
        if shape == "explain":
            return [line.expandtabs(1).rstrip() for line in found if EXPLAINED.match(line)]
        squeezed = [re.sub(r"[ \t]+", " ", line).rstrip() for line in found]
        return sorted(squeezed) if shape == "sorted" else squeezed

    def _hidden(self, text: str) -> str:
        text = text.replace(self.server, "{server}").replace(self.server.split("//")[-1], "{addr}")
        text = text.replace(self.folder, "{folder}")
        text = text.replace(f"ns-{self.ident}", "{ns}").replace(self.ident, "{id}")
        text = UUID.sub(lambda found: f"<uid:{self.uids.setdefault(found[0], len(self.uids) + 1)}>", text)
        text = self.times.hidden(text)
        for pattern, replacement in RULES:
            text = pattern.sub(replacement, text)
        return text


def _ordered(line: str) -> str:
    """A line that is JSON with its members in the order of their names."""
    try:
        return json.dumps(json.loads(line), sort_keys=True)
    except ValueError:
        return line
