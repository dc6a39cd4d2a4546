"""Records what a real API server answers to the requests that the project keeps, or checks that it still does.

    python tests/conformance/differential/record.py --server URL --token TOKEN [--check] [FAMILY...]

Run by hand after cases were added to `tests/conformance/recorded/FAMILY.jsonl` (a line may come without answers), and
with `--check` by test_e2e_real_answers where the binaries of `make assets` are there; the family `applying` is only
checked. The form is that of the golden captures; test_recorded_rest replays the cases against our server.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import golden_matching
import golden_rest
from case_times import ServerTimes, instants
from differential.normalising import Normaliser

RECORDED = Path(__file__).parents[1] / "recorded"
APPLYING = "applying"
"""The family that lies beside `recorded`, with managedFields, and with more in objects than it demands."""
KEPT_HEADERS = ("Content-Type", "Allow", "Retry-After")
AT_ONCE = 4
REPLAYS = 3


@dataclass
class Recording(golden_rest.Replay):
    """One case, sent to a server whose answers are kept instead of compared."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    normaliser: Normaliser = field(init=False)

    def recorded(self) -> dict[str, Any]:
        """The case with the server's answers. Raises Difference where it cannot be run."""
        asked = [{key: value for key, value in step.items() if key != "response"} for step in self.case["steps"]]
        self.normaliser = Normaliser(self.ident, ServerTimes(instants(asked)))
        difference = self.run()
        if difference:
            raise golden_matching.Difference(f"{self.case['name']}: {difference}")
        steps = [{**step, "response": answer} for step, answer in zip(self.case["steps"], self.answers, strict=True)]
        return {**self.case, "steps": steps}

    def _run_step(self, step: dict[str, Any]) -> None:
        request = self._filled(step["request"])
        self.normaliser.note(request.get("body"))
        if request.get("watch"):
            self._keep_watch(step, request)
            return
        reply = self._call(request)
        if step.get("waitCrd") and reply.status == 201:
            self._wait_until_served(request["body"]["spec"])
        self.bodies.append(reply.content)
        shown = golden_rest.projected(reply.content, step.get("project"))
        self.answers.append(self._kept(replace(reply, content=shown)))

    def _keep_watch(self, step: dict[str, Any], request: dict[str, Any]) -> None:
        events, replies = self.watched(step, request)
        if isinstance(events, golden_rest.Reply):
            self.bodies.append(events.content)
            self.answers.append(self._kept(events))
            return
        self.bodies.append(events)
        told = self.normaliser.pattern(list(golden_matching.told_events(events)))
        actions = [self._kept(reply) for reply in replies]
        self.answers.append({"status": 200, "events": told} | ({"actions": actions} if actions else {}))

    def _kept(self, reply: golden_rest.Reply) -> dict[str, Any]:
        headers: dict[str, Any] = {name: reply.headers[name] for name in KEPT_HEADERS if reply.headers.get(name)}
        warnings = reply.headers.get_all("Warning")
        if warnings:
            headers["Warning"] = [self.normaliser.text(each) for each in warnings]
        kind = "body" if isinstance(reply.content, dict | list) else "text"
        return {"status": reply.status, "headers": headers, kind: self.normaliser.pattern(reply.content)}


def asked(family: str) -> list[dict[str, Any]]:
    """The cases of a family without their answers."""
    lines = (RECORDED / f"{family}.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    for case in cases:
        for step in case["steps"]:
            step.pop("response", None)
    return cases


def answered(url: str, family: str) -> Iterator[dict[str, Any]]:
    """The cases of a family with the answers of the server at `url`."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda case: Recording(url, case).recorded(), asked(family))


def _ordered(value: Any) -> Any:
    """An answer with its causes in a fixed order (upstream has them in any) and without the message that lists them."""
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    causes = (value.get("details") or {}).get("causes") if isinstance(value.get("details"), dict) else None
    kept = {key: _ordered(item) for key, item in value.items() if not (key == "message" and causes)}
    if isinstance(kept.get("causes"), list):
        kept["causes"] = sorted(kept["causes"], key=json.dumps)
    return kept


def main() -> int:
    """Record the families named, or all; with `--check`, say what is answered differently now."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--viewer-token", default="viewer-token")
    parser.add_argument("--check", action="store_true", help="compare with what is kept instead of writing it")
    parser.add_argument("families", nargs="*", default=sorted(path.stem for path in RECORDED.glob("*.jsonl")))
    options = parser.parse_args()
    golden_rest.TOKENS |= {"admin": options.token, "viewer": options.viewer_token}
    judge = checked if options.check else rewritten
    return 1 if sum(judge(options.server, family) for family in options.families) else 0


def checked(url: str, family: str) -> int:
    """How many cases of a family the server at `url` answers differently now; prints which.

    Those that differ are asked again: what a real server answers depends, rarely, on when a second ends or on what it
    does meanwhile for other cases.
    """
    path = RECORDED.parent / f"{APPLYING}.jsonl" if family == APPLYING else RECORDED / f"{family}.jsonl"
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    differs = _replays_differently if family == APPLYING else _records_differently
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(REPLAYS):
            found = pool.map(differs, [url] * len(cases), cases)
            cases = [case for case, is_other in zip(cases, found, strict=True) if is_other]
    print(f"{family}: {len(cases)} cases answered differently {' '.join(case['name'] for case in cases)}")
    return len(cases)


def _replays_differently(url: str, case: dict[str, Any]) -> bool:
    return bool(golden_rest.Replay(url, case).run())


def _records_differently(url: str, case: dict[str, Any]) -> bool:
    bare = [{key: value for key, value in step.items() if key != "response"} for step in case["steps"]]
    return bool(_ordered(Recording(url, {**case, "steps": bare}).recorded()) != _ordered(case))


def rewritten(url: str, family: str) -> int:
    """Keep what the server at `url` answers to the cases of a family now; returns 0, for nothing is wrong then."""
    lines = [json.dumps(case) for case in answered(url, family)]
    (RECORDED / f"{family}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{family}: {len(lines)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
