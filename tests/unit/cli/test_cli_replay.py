"""`podscaler replay`: files, folders, streams, gzip, and what it says about bad input."""

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podscaler.cli.main import cli

HEADER = {"recording": 1, "kubernetes": "1.37.0", "flags": {}}


def sync(name: str = "web") -> dict[str, object]:
    """A sync whose target's kind is not served: the smallest there is."""
    status = {"kind": "Status", "message": "no matches", "reason": "NoKindMatch"}
    spec = {"scaleTargetRef": {"kind": "X", "name": "x"}, "maxReplicas": 1}
    hpa = {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}
    return {"time": "2026-01-01T00:00:00Z", "hpa": hpa, "scale": status}


def recorded(*syncs: object) -> bytes:
    """A recording."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in (HEADER, *syncs))


def run(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(cli, ["replay", *map(str, arguments)], input=stdin)


def names(output: bytes) -> list[str]:
    """The autoscalers of decision lines."""
    return [json.loads(line)["hpa"] for line in output.splitlines()]


@pytest.fixture
def web(tmp_path: Path) -> Path:
    """A recording with two syncs."""
    path = tmp_path / "web.recording.jsonl"
    path.write_bytes(recorded(sync("a"), sync("b")))
    return path


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A gzip recording of two members."""
    path = tmp_path / "packed.recording.jsonl.gz"
    text = recorded(sync("c"), sync("d"))
    path.write_bytes(gzip.compress(text[:100]) + gzip.compress(text[100:]))
    return path


def test_standard_output(web: Path, packed: Path) -> None:
    """Without an option the decisions of all recordings go to standard output, in order."""
    result = run(web, packed)
    assert (result.exit_code, names(result.stdout_bytes)) == (0, ["ns/a", "ns/b", "ns/c", "ns/d"])


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input(pack: type) -> None:
    """`-` is standard input, plain or gzip."""
    result = run("-", stdin=pack(recorded(sync("a"))))
    assert (result.exit_code, names(result.stdout_bytes)) == (0, ["ns/a"])


def test_one_file(web: Path, packed: Path, tmp_path: Path) -> None:
    """--out writes all decisions into one file."""
    out = tmp_path / "all.jsonl"
    result = run(web, packed, "--out", out)
    assert (result.exit_code, result.stdout, names(out.read_bytes())) == (
        0,
        "",
        ["ns/a", "ns/b", "ns/c", "ns/d"],
    )


def test_folder(web: Path, packed: Path, tmp_path: Path) -> None:
    """--out-dir writes NAME.decisions.jsonl for each NAME.recording.jsonl[.gz], into a folder that it makes."""
    folder = tmp_path / "new" / "decisions"
    result = run(web, packed, "--out-dir", folder)
    written = {path.name: names(path.read_bytes()) for path in folder.iterdir()}
    assert (result.exit_code, written) == (
        0,
        {"web.decisions.jsonl": ["ns/a", "ns/b"], "packed.decisions.jsonl": ["ns/c", "ns/d"]},
    )


def test_line_format(web: Path) -> None:
    """A decision line has the fields of the format, and a trace where it is asked for."""
    plain, traced = (json.loads(run(web, *more).stdout.splitlines()[0]) for more in ((), ("--trace",)))
    assert list(plain) == ["time", "hpa", "replicas", "status", "events", "error"]
    assert traced.pop("trace")["branch"] == "NoScale"
    assert traced == plain


def test_bad_line_is_named_and_earlier_decisions_are_written(tmp_path: Path) -> None:
    """A bad line ends it with status 2, the file and the line's number; what came before is there."""
    path = tmp_path / "bad.recording.jsonl"
    path.write_bytes(recorded(sync("a")) + b'{"time": 1}\n' + recorded(sync("b")))
    result = run(path)
    assert (result.exit_code, names(result.stdout_bytes), result.stderr) == (
        2,
        ["ns/a"],
        f"podscaler: {path}: line 3: Expected `str`, got `int` - at `$.time`\n",
    )


def test_truncated_gzip(tmp_path: Path) -> None:
    """Gzip data that ends too early is said to, after the decisions that it holds."""
    path = tmp_path / "cut.recording.jsonl.gz"
    noise = [sync(f"a{index * 7919 % 1000}") for index in range(1000)]
    path.write_bytes(gzip.compress(recorded(*noise))[:-20])
    result = run(path)
    assert (result.exit_code, result.stderr.endswith("the gzip data ends too early\n")) == (2, True)
    assert len(names(result.stdout_bytes)) > 500


def test_broken_gzip(tmp_path: Path) -> None:
    """What only looks like gzip is refused in one sentence."""
    path = tmp_path / "broken.gz"
    path.write_bytes(b"\x1f\x8b" + b"x" * 100)
    result = run(path)
    assert (result.exit_code, "broken gzip data" in result.stderr) == (2, True)


def test_empty_file(tmp_path: Path) -> None:
    """An empty file has no header."""
    path = tmp_path / "empty"
    path.write_bytes(b"")
    result = run(path)
    assert (result.exit_code, result.stderr) == (
        2,
        f"podscaler: {path}: line 1: the recording is empty; its first line must be a header\n",
    )


def test_unreadable_and_unwritable(web: Path, tmp_path: Path) -> None:
    """A file that cannot be read or written, or a folder that cannot be made, is one sentence."""
    missing = tmp_path / "missing"
    answers = [run(missing), run(web, "--out", missing / "out"), run(web, "--out-dir", web)]
    assert [(answer.exit_code, answer.stderr) for answer in answers] == [
        (2, f"podscaler: cannot read {missing}: No such file or directory\n"),
        (2, f"podscaler: cannot write {missing}/out: No such file or directory\n"),
        (2, f"podscaler: cannot make the folder {web}: File exists\n"),
    ]


def test_wrong_use(web: Path, tmp_path: Path) -> None:
    """Two places to write to, and two recordings for one place, are refused before anything is written."""
    both = run(web, "--out", tmp_path / "x", "--out-dir", tmp_path / "y")
    twice = run(web, tmp_path / "other" / web.name, "--out-dir", tmp_path / "y")
    assert both.stderr == "podscaler: --out and --out-dir cannot be used together\n"
    assert "would both be written to" in twice.stderr
    assert (both.exit_code, twice.exit_code, (tmp_path / "y").exists()) == (2, 2, False)


def test_by_other_rules(web: Path) -> None:
    """Another version or another algorithm than the header's may be asked for; a name that nobody has is a sentence."""
    lines = [run(web, "--trace", *flags).stdout_bytes for flags in (("--emulate=1.38",), ("--algorithm=v1.1",))]
    traces = [json.loads(line.splitlines()[0])["trace"] for line in lines]
    assert [(trace["version"], trace.get("algorithm")) for trace in traces] == [("1.38", None), ("1.37", "v1.1")]
    unknown = run(web, "--algorithm=v1.2")
    assert (unknown.exit_code, "is not one of current, v1.1" in unknown.stderr) == (2, True)
