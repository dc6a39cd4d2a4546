"""The files of a recording: modes, rotation, what is left alone, what a kill leaves."""

import gzip
import os
import zlib
from pathlib import Path

import pytest

from podscaler.api.typed import recording
from podscaler.base.errors import UsageError
from podscaler.controller.recording.record_file import RecordFile

HEADER = recording.header_line("1.37.0", {"a": 1})


def _file(folder: Path, *, name: str = "web.recording.jsonl.gz", max_bytes: int = 10**6, files: int = 3) -> RecordFile:
    return RecordFile(folder / name, HEADER, max_bytes=max_bytes, files=files)


def _text(path: Path) -> bytes:
    """What can be read of a gzip file, whether it was ended or not."""
    return zlib.decompressobj(31).decompress(path.read_bytes())


def test_a_file_is_gzip_with_a_header_for_its_owner(tmp_path: Path) -> None:
    """Header first, then lines; nobody else may read it, whatever the umask."""
    file = _file(tmp_path)
    before = os.umask(0)
    try:
        file.begin()
    finally:
        os.umask(before)
    file.write(b"{}\n")
    file.close()
    assert (gzip.decompress(file.path.read_bytes()), file.path.stat().st_mode & 0o777) == (HEADER + b"{}\n", 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["web.recording.jsonl.gz"]


def test_what_is_flushed_survives_a_kill(tmp_path: Path) -> None:
    """Up to the last flush the file can be read, though nobody ended it."""
    file = _file(tmp_path)
    file.begin()
    file.write(b"one\n")
    file.flush()
    flushed = _text(file.path)
    file.write(b"two\n")
    assert (flushed, _text(file.path)) == (HEADER + b"one\n", HEADER + b"one\n")
    file.abandon()


def test_full_files_are_numbered_and_the_oldest_goes(tmp_path: Path) -> None:
    """FILE is the newest; no more than the bound are kept, and each begins with a header."""
    file = _file(tmp_path, max_bytes=1, files=3)
    for number in range(5):
        assert file.is_full or number == 0
        file.begin()
        file.write(f"{number}\n".encode())
    file.close()
    found = {path.name: gzip.decompress(path.read_bytes()).removeprefix(HEADER) for path in tmp_path.iterdir()}
    assert found == {
        "web.recording.jsonl.gz": b"4\n",
        "web.1.recording.jsonl.gz": b"3\n",
        "web.2.recording.jsonl.gz": b"2\n",
    }


@pytest.mark.parametrize(
    ("name", "numbered"),
    [("tape", "tape.1"), ("a.b.jsonl", "a.b.1.jsonl"), ("x.gz", "x.1.gz"), (".gz", ".gz.1")],
)
def test_numbers_stand_before_the_suffixes(tmp_path: Path, name: str, numbered: str) -> None:
    """So the numbered files have the names that recordings have."""
    for _ in range(2):
        file = _file(tmp_path, name=name)
        file.begin()
        file.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, numbered])


def test_one_file_only(tmp_path: Path) -> None:
    """With a bound of one the fresh file takes the place of the old one."""
    for text in (b"1\n", b"2\n"):
        file = _file(tmp_path, files=1)
        file.begin()
        file.write(text)
        file.close()
    assert [gzip.decompress(path.read_bytes()) for path in tmp_path.iterdir()] == [HEADER + b"2\n"]


def test_what_a_kill_left_unnamed_is_replaced(tmp_path: Path) -> None:
    """A fresh file that never got its name does not stop the next one."""
    (tmp_path / "web.recording.jsonl.gz.new").write_bytes(b"half")
    file = _file(tmp_path)
    file.begin()
    file.close()
    assert [path.name for path in tmp_path.iterdir()] == ["web.recording.jsonl.gz"]


@pytest.mark.parametrize(
    "content",
    [b"", HEADER, gzip.compress(HEADER + b"{}\n"), gzip.compress(HEADER + b"{}")[:-9]],
    ids=["empty", "plain", "gzip", "cut off"],
)
def test_a_recording_may_be_followed(tmp_path: Path, content: bytes) -> None:
    """What is empty or a recording may be numbered."""
    file = _file(tmp_path)
    file.path.write_bytes(content)
    file.check()


@pytest.mark.parametrize(
    "content", [b"apiVersion: v1\n", b"{}\n", gzip.compress(b"hello"), b"\x1f\x8bxx"], ids=["yaml", "json", "gz", "bad"]
)
def test_another_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    """A typing mistake costs nobody a file."""
    file = _file(tmp_path)
    file.path.write_bytes(content)
    with pytest.raises(UsageError, match=r"exists and is not a recording; it is left alone"):
        file.check()
    assert file.path.read_bytes() == content


def test_a_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    """Two controllers never write to the same name; when the first has ended, the second may."""
    first, second = _file(tmp_path), _file(tmp_path)
    first.begin()
    with pytest.raises(UsageError, match="another process is recording to"):
        second.check()
    first.close()
    second.check()


def test_what_is_no_file(tmp_path: Path) -> None:
    """A directory, or a place that cannot be looked at, is a sentence."""
    with pytest.raises(UsageError, match="is not a regular file"):
        RecordFile(tmp_path, HEADER, max_bytes=1, files=1).check()
    (tmp_path / "f").touch()
    with pytest.raises(UsageError, match=r"cannot open .*: Not a directory"):
        RecordFile(tmp_path / "f" / "x", HEADER, max_bytes=1, files=1).check()
    _file(tmp_path, name="none").check()


def test_a_failure_to_begin_moves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the fresh file cannot be written, the old one keeps its name."""
    file = _file(tmp_path)
    file.begin()
    file.write(b"1\n")
    file.close()

    def full(descriptor: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        file.begin()
    assert gzip.decompress(file.path.read_bytes()) == HEADER + b"1\n"
