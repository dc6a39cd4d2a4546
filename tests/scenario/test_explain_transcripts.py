"""The transcripts of docs/explain.md are what the command prints.

The recordings are in the folder `explain` beside this file. After a change of the wording, write the transcripts anew
with `PODSCALER_WRITE_DOCS=1 pytest tests/scenario/test_explain_transcripts.py` and read the difference.
"""

import os
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from podscaler.cli.main import cli

RECORDINGS = Path(__file__).parent / "explain"
PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMPT = "$ podscaler "


def transcript(block: str) -> str:
    """The block with its commands run again."""
    commands = [line for line in block.splitlines() if line.startswith(PROMPT)]
    return "".join(f"{command}\n{output(command)}" for command in commands)


def output(command: str) -> str:
    """What a command prints, on either stream."""
    arguments = shlex.split(command.removeprefix(PROMPT))
    return CliRunner().invoke(cli, arguments, catch_exceptions=False).output


def titles() -> list[str]:
    """The headings above the blocks."""
    text = PAGE.read_text(encoding="utf-8")
    return [text[: match.start()].rpartition("### ")[2].partition("\n")[0] for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("index", range(len(titles())), ids=titles())
def test_the_page_shows_what_is_printed(index: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of docs/explain.md is the output of its commands."""
    monkeypatch.chdir(RECORDINGS)
    text = PAGE.read_text(encoding="utf-8")
    match = list(BLOCK.finditer(text))[index]
    fresh = transcript(match[1])
    if os.environ.get("PODSCALER_WRITE_DOCS"):
        PAGE.write_text(text[: match.start(1)] + fresh + text[match.end(1) :], encoding="utf-8")
        return
    assert fresh == match[1]
