"""The times of a case: those that its requests give are literal in answers, the others are set by the server.

Called by what turns answers into patterns (`differential.normalising`, `kubectl_output`) and by `golden_kubectl`, whose
captures hold ages of objects. Source: "times given by the requests are literal" (tests/conformance/golden/README.md).
"""

import json
import re
import time
from calendar import timegm
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z")
DAY_S = 86_400


def instants(value: Any) -> set[tuple[str, ...]]:
    """The instants anywhere in a JSON value, each as year, month, day, hour, minute and second."""
    return set(INSTANT.findall(json.dumps(value)))


@dataclass
class ServerTimes:
    """Hides the times that a server has set during a case.

    Attributes:
        given: instants that requests hold, which no answer hides.
        now_s: the clock, in seconds since the epoch, read when the case begins.
    """

    given: set[tuple[str, ...]] = field(default_factory=set)
    now_s: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self._started_s = self.now_s()

    def hidden(self, text: str) -> str:
        """The text with `<time>` in place of every instant within a day of now that no request gave."""
        return INSTANT.sub(self._hidden, text)

    def _hidden(self, found: re.Match[str]) -> str:
        is_recent = abs(timegm(tuple(int(part) for part in found.groups())) - self._started_s) < DAY_S
        return "<time>" if is_recent and found.groups() not in self.given else found[0]


def moved(value: Any, by: timedelta) -> Any:
    """A JSON value with every instant, to the second, later by a span."""

    def later(found: re.Match[str]) -> str:
        at = datetime(*(int(part) for part in found.groups()), tzinfo=UTC) + by
        return f"{at:%Y-%m-%dT%H:%M:%SZ}"

    return json.loads(INSTANT.sub(later, json.dumps(value)))
