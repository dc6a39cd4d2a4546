"""Replays files of captures over HTTP: the selected cases of a file together, against a server of their own.

Called by test_golden_rest, test_recorded_rest and test_applying_rest. Several cases of a file are replayed at once:
those that watch wait most of the time. Files share nothing, so that each may be replayed by another worker.
"""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pytest
from golden_matching import Matcher
from golden_rest import Replay
from golden_server import serving

AT_ONCE = 8
NOT_HERE = "metrics"
ALONE = "compaction"
"""Cases that need the history to be compacted come last: others watch what it holds."""


class _Head(msgspec.Struct):
    """What is read of every case to collect the tests."""

    name: str
    needs: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Captures:
    """A file of captures, one case a line.

    Attributes:
        is_strict: whether answers may hold nothing besides what was captured.
    """

    path: Path
    is_strict: bool = False

    @cached_property
    def names(self) -> list[str]:
        """The cases that are replayed here."""
        heads = msgspec.json.Decoder(_Head)
        found = (heads.decode(line) for line in self.path.read_bytes().splitlines())
        return [head.name for head in found if NOT_HERE not in (head.needs or ())]

    def differences(self, is_selected: Callable[[str], bool]) -> dict[str, str]:
        """The first difference of every case that `is_selected`, empty for those without."""
        decoded = (msgspec.json.decode(line) for line in self.path.read_bytes().splitlines())
        cases = {case["name"]: case for case in decoded if case["name"] in self.names and is_selected(case["name"])}
        alone = {name: case for name, case in cases.items() if ALONE in (case.get("needs") or ())}
        others = {name: case for name, case in cases.items() if name not in alone}
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as port:

            def first_difference(case: dict[str, Any]) -> str:
                try:
                    return Replay(f"http://127.0.0.1:{port}", case, matcher=Matcher(strict=self.is_strict)).run()
                except OSError as error:  # of one case, and no other
                    return f"no answer: {error!r}"

            with ThreadPoolExecutor(AT_ONCE) as pool:
                found = dict(zip(others, pool.map(first_difference, others.values()), strict=True))
            return found | {name: first_difference(case) for name, case in alone.items()}


@dataclass
class Replays:
    """What was found in replaying the families of a file of tests; each is replayed once, when it is asked for.

    Args:
        families: the captures of each.
        selected: the names of the tests that will run (`test_recorded[kinds:job-status]`), and no others are replayed.
        test: the name of the test function.
    """

    families: dict[str, Captures]
    selected: frozenset[str]
    test: str
    _found: dict[str, dict[str, str]] = field(default_factory=dict)

    def difference(self, name: str) -> str:
        """The first difference of the case `FAMILY:CASE`, empty where there is none."""
        family, _, case = name.partition(":")
        if family not in self._found:
            prefix = f"{self.test}[{family}:"
            self._found[family] = self.families[family].differences(lambda one: f"{prefix}{one}]" in self.selected)
        return self._found[family][case]


def replays(request: pytest.FixtureRequest, families: dict[str, Captures], test: str) -> Replays:
    """Those of the tests that were selected."""
    return Replays(families, frozenset(item.name for item in request.session.items), test)


def parameters(families: dict[str, Captures], gaps: dict[str, str]) -> Iterator[Any]:
    """A parameter for every case; those that are a gap must fail."""
    for family, captures in families.items():
        for case in captures.names:
            name = f"{family}:{case}"
            reason = gaps.get(name)
            yield pytest.param(name, id=name, marks=[pytest.mark.xfail(reason=reason, strict=True)] if reason else [])
