"""Records what kubectl prints against a real API server, or shows where another server makes it print something else.

    python tests/conformance/differential/record_kubectl.py --server URL --token TOKEN --kubectl PATH --kubectl PATH
        [--against URL --against-token TOKEN] [--only REGEX] [FAMILY...]

Run by hand after cases were added to `differential/scripts/FAMILY.txt`; what was printed goes to
`transcripts/FAMILY.jsonl`, which test_kubectl_transcripts replays. With `--against`, nothing is kept, and both servers
are asked. The servers are set up as the one of `record.py`.
"""

import argparse
import itertools
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import kubectl_script
import kubectl_session
from kubectl_session import Server, Session, difference

SCRIPTS = Path(__file__).parent / "scripts"
TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
AT_ONCE = 4

Answers = list[dict[str, Any]]


@dataclass(frozen=True)
class Recorder:
    """Runs cases against one server with every kubectl.

    Args:
        homes: of the server, by version of kubectl.
        programs: by version.
    """

    server: Server
    homes: dict[str, Path]
    programs: dict[str, str]

    def answers(self, case: dict[str, Any]) -> dict[str, Answers]:
        """What was printed, by version of kubectl."""
        versions = [version for version in self.programs if version in case["clients"]]
        return {each: self._run(each, case) for each in versions}

    def _run(self, version: str, case: dict[str, Any]) -> Answers:
        return list(Session(self.server, self.programs[version], self.homes[version], case).answers())


def recorded(case: dict[str, Any], answers: dict[str, Answers]) -> Iterator[dict[str, Any]]:
    """The case with what was printed: one where all versions of kubectl agree, else one for each, named after it."""
    groups = itertools.groupby(sorted(answers, key=lambda each: json.dumps(answers[each])), key=lambda v: answers[v])
    found = [(list(versions), steps) for steps, versions in groups]
    for versions, answer in found:
        name = case["name"] if len(found) == 1 else f"{case['name']}@{versions[0]}"
        steps = [{**step, **each} for step, each in zip(case["steps"], answer, strict=True)]
        yield {**case, "name": name, "clients": sorted(versions), "steps": steps}


def main() -> int:
    """Record the families named, or all; with `--against`, print differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", default="admin-token")
    parser.add_argument("--viewer-token", default="viewer-token")
    parser.add_argument("--kubectl", action="append", required=True)
    parser.add_argument("--against")
    parser.add_argument("--against-token", default="admin-token")
    parser.add_argument("--only", default="")
    parser.add_argument("families", nargs="*", default=sorted(path.stem for path in SCRIPTS.glob("*.txt")))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        real = _recorder(options, Server(options.server, options.token, options.viewer_token), Path(folder) / "real")
        if not options.against:
            return sum(_record(real, family) for family in options.families)
        other_server = Server(options.against, options.against_token, options.viewer_token)
        other = _recorder(options, other_server, Path(folder) / "other")
        return min(1, sum(_compare(real, other, family, options.only) for family in options.families))


def _recorder(options: argparse.Namespace, server: Server, home: Path) -> Recorder:
    programs = {kubectl_session.client_version(kubectl): kubectl for kubectl in options.kubectl}
    homes = {version: home / version for version in programs}
    for each in homes.values():
        each.mkdir(parents=True)
    return Recorder(server, homes, programs)


def _record(real: Recorder, family: str) -> int:
    asked = list(kubectl_script.cases(SCRIPTS / f"{family}.txt"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(real.answers, asked)
        kept = [each for case, given in zip(asked, answers, strict=True) for each in recorded(case, given)]
    lines = [json.dumps(case) for case in kept]
    (TRANSCRIPTS / f"{family}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{family}: {len(asked)} cases, {sum(len(case['steps']) for case in asked)} commands")
    return 0


def _compare(real: Recorder, other: Recorder, family: str, only: str) -> int:
    asked = [case for case in kubectl_script.cases(SCRIPTS / f"{family}.txt") if re.search(only, case["name"])]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        wanted, got = pool.map(real.answers, asked), pool.map(other.answers, asked)
        told = [
            f"{case['name']}@{version}: {found}"
            for case, ours, theirs in zip(asked, got, wanted, strict=True)
            for version in theirs
            if (found := difference(case, theirs[version], ours[version]))
        ]
    print("\n".join([*told, f"{family}: {len(asked)} cases, {len(told)} differences"]), flush=True)
    return len(told)


if __name__ == "__main__":
    sys.exit(main())
