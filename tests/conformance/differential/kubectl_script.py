"""Reads scripts of kubectl commands, which people write, as the cases that are recorded and replayed.

Called by `record_kubectl`. A script is lines:

    == NAME [fixtures=A,B] [clients=1.37]   begins a case
    + FILE                                  begins a file in the folder of kubectl: the lines with `|` that follow
    $ ARGUMENTS                             a command, `-n {ns}` is added; `$!` adds nothing; `VAR=value` may lead
    $explain, $sorted, $json, $contains     the same, with a shape or a way to compare
    < TEXT                                  a line of the command's standard input
    # TEXT                                  a remark
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHAPES = ("explain", "sorted", "json", "contains")
ALL_CLIENTS = ["1.32", "1.37"]


def cases(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of a script, in its order, without answers. ValueError for a line of no known form."""
    case: dict[str, Any] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            if case:
                yield case
            case = _case(line[3:])
        elif line.strip() and not line.startswith("#"):
            _add(case, line)
    if case:
        yield case


def _case(text: str) -> dict[str, Any]:
    name, *settings = text.split()
    given = dict(setting.split("=", 1) for setting in settings)
    fixtures = given["fixtures"].split(",") if "fixtures" in given else []
    clients = given["clients"].split(",") if "clients" in given else ALL_CLIENTS
    return {"name": name, "clients": clients, "fixtures": fixtures, "files": {}, "steps": []}


def _add(case: dict[str, Any], line: str) -> None:
    mark, _, rest = line.partition(" ")
    if mark == "+":
        case["files"][rest.strip()] = ""
    elif mark == "|":
        name = next(reversed(case["files"]))
        case["files"][name] += f"{rest}\n"
    elif mark == "<":
        step = case["steps"][-1]
        step["stdin"] = f"{step.get('stdin', '')}{rest}\n"
    elif mark.startswith("$"):
        case["steps"].append(_step(mark[1:], rest))
    else:
        raise ValueError(f"{case['name']}: {line}")


def _step(mark: str, text: str) -> dict[str, Any]:
    words = shlex.split(text)
    env = {}
    while "=" in words[0] and words[0].split("=")[0].isupper():
        name, _, value = words.pop(0).partition("=")
        env[name] = value
    is_bare = mark.endswith("!")
    shape = mark.rstrip("!")
    if not is_bare:
        place = words.index("--") if "--" in words else len(words)
        words[place:place] = ["-n", "{ns}"]
    how = {"compare": shape} if shape == "contains" else {"shape": shape} if shape in SHAPES else {}
    return {"argv": words} | ({"env": env} if env else {}) | how
