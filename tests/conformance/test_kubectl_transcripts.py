"""What kubectl printed against a real API server, replayed against ours; recorded by differential/record_kubectl.py.

Where several versions of kubectl printed the same, one of them is asked, a different one from case to case. `make test`
replays the shortest case of each family that has a short one, `make test-all` every second one besides, `make e2e` all.
"""

import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubectl_session
import pytest
from golden_gaps import TRANSCRIPT_GAPS
from golden_server import ADMIN_TOKEN, VIEWER_TOKEN, serving
from kubectl_session import Server, Session

import prerequisites
from podscaler.base.clock import SystemClock
from podscaler.controlplane.credentials import certificates
from real_programs import kubectls

TRANSCRIPTS = Path(__file__).parent / "transcripts"
AT_ONCE = 4
SHORT = 12
"""So many commands are few."""


def _clients() -> dict[str, str]:
    """The programs at hand, by version."""
    return {kubectl_session.client_version(kubectl): kubectl for kubectl in kubectls()}


@dataclass(frozen=True)
class Asked:
    """A case that can be replayed here.

    Attributes:
        is_real: whether only `make e2e` replays it: every second one, and what is for another version of kubectl.
    """

    case: dict[str, Any]
    kubectl: str
    is_real: bool

    @property
    def length(self) -> int:
        """How many commands it has."""
        return len(self.case["steps"])


def _cases() -> Iterator[tuple[str, Asked]]:
    for family in sorted(TRANSCRIPTS.glob("*.jsonl")):
        cases = [json.loads(line) for line in family.read_text(encoding="utf-8").splitlines()]
        names = list(dict.fromkeys(case["name"].partition("@")[0] for case in cases))
        for case in cases:
            versions = [version for version in case["clients"] if version in CLIENTS]
            name, _, only = case["name"].partition("@")
            place = names.index(name)
            if versions:
                version = versions[place % len(versions)]
                is_real = place % 2 != 0 or bool(only and only != sorted(CLIENTS)[place // 2 % len(CLIENTS)])
                yield f"{family.stem}:{case['name']}", Asked(case, CLIENTS[version], is_real)


def _shortest() -> set[str]:
    """Of each family the case with the fewest commands, if they are few."""
    found: dict[str, str] = {}
    for name, asked in sorted(CASES.items(), key=lambda item: item[1].length):
        if not asked.is_real and asked.length <= SHORT:
            found.setdefault(name.partition(":")[0], name)
    return set(found.values())


CLIENTS = _clients()
CASES = dict(_cases())
SHORTEST = _shortest()

pytestmark = [prerequisites.KUBECTL.mark(is_there=bool(CLIENTS))]


@pytest.fixture(scope="module")
def differences(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where each case that was selected differs, empty for those that do not."""
    folder = tmp_path_factory.mktemp("transcripts")
    made = certificates.ensure(folder / "pki", now_ns=SystemClock().now_ns())
    selected = [
        name for name in CASES if any(item.name == f"test_transcript[{name}]" for item in request.session.items)
    ]
    with serving(folder / "store", tls=made.server_context()) as port, ThreadPoolExecutor(AT_ONCE) as pool:
        server = Server(f"https://127.0.0.1:{port}", ADMIN_TOKEN, VIEWER_TOKEN)
        homes = {kubectl: folder / version for version, kubectl in CLIENTS.items()}
        for home in homes.values():
            home.mkdir()

        def replayed(name: str) -> str:
            asked = CASES[name]
            got = list(Session(server, asked.kubectl, homes[asked.kubectl], asked.case).answers())
            return kubectl_session.difference(asked.case, asked.case["steps"], got)

        yield dict(zip(selected, pool.map(replayed, selected), strict=True))


def _parameters() -> Iterator[Any]:
    for name, asked in CASES.items():
        marks = [pytest.mark.real] if asked.is_real else [] if name in SHORTEST else [pytest.mark.slow]
        if name in TRANSCRIPT_GAPS:
            marks.append(pytest.mark.xfail(reason=TRANSCRIPT_GAPS[name], strict=True))
        yield pytest.param(name, id=name, marks=marks)


@pytest.mark.parametrize("name", list(_parameters()))
def test_transcript(name: str, differences: dict[str, str]) -> None:
    """kubectl prints what it printed against the recorded server; a case listed as a gap must still differ."""
    difference = differences[name]
    assert not difference, difference


def test_transcripts_cover_many_commands() -> None:
    """Every version of kubectl that was recorded has hundreds of commands."""
    families = TRANSCRIPTS.glob("*.jsonl")
    cases = [json.loads(line) for path in families for line in path.read_text(encoding="utf-8").splitlines()]
    counted = dict.fromkeys(("1.32", "1.37"), 0)
    for case, version in itertools.product(cases, counted):
        counted[version] += len(case["steps"]) if version in case["clients"] else 0
    assert min(counted.values()) >= 300
