"""The source file: numbers in files, and what lies outside the folder."""

import os
from pathlib import Path
from typing import Any

import pytest

from podscaler.base.clock import NANOSECONDS
from podscaler.sources.protocol import InvalidSource, InvalidValue, Number, SourceConfig
from podscaler.sources.systems.file import FileSource
from podscaler.testing import VirtualClock


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that the flag allows, beside a secret, as a mounted ConfigMap has links."""
    (tmp_path / "secret").write_text("1234")
    root = tmp_path / "metrics"
    (root / "..data").mkdir(parents=True)
    (root / "..data" / "length").write_text("42\n")
    (root / "length").symlink_to("..data/length")
    (root / "stats.json").write_text('{"queue": [{"length": 7}]}')
    (root / "outside").symlink_to(tmp_path / "secret")
    (root / "up").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    (root / "empty").write_text("")
    (root / "long").write_bytes(b"1" * (1024 * 1024 + 1))
    os.mkfifo(root / "pipe")
    return root


async def read(folder: Path | None, clock: VirtualClock | None = None, **settings: Any) -> Number:
    """The number that the source reads."""
    return await FileSource(SourceConfig(settings, clock or VirtualClock(), folder=folder)).read()


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        ({"path": "..data/length"}, 42),
        ({"path": "length"}, 42),
        ({"path": "stats.json", "jsonPath": "$.queue[0].length"}, 7),
    ],
    ids=["a text", "a link below the folder", "JSON"],
)
async def test_numbers(folder: Path, settings: dict[str, Any], number: Number) -> None:
    """The whole text, or what a JSONPath query selects."""
    assert await read(folder, **settings) == number


@pytest.mark.parametrize("path", ["../secret", "outside", "up/secret", "/etc/hostname", ".", "..data/../../secret"])
async def test_what_lies_outside(folder: Path, path: str) -> None:
    """Neither a path nor a link leads there."""
    with pytest.raises(InvalidSource, match=r"is not below the folder of --metric-source-folder$"):
        await read(folder, path=path)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pipe", "it is no regular file"),
        ("..data", "it is no regular file"),
        ("empty", "the result is an empty text, not a number"),
        ("long", "the file is larger than 1048576 bytes"),
        ("stats.json", "the result is a text that is no number"),
    ],
)
async def test_bad_values(folder: Path, path: str, text: str) -> None:
    """Each is a failure with its reason; none blocks."""
    with pytest.raises(InvalidValue, match=f"^{text}$"):
        await read(folder, path=path)


@pytest.mark.parametrize("path", ["missing", "missing/length", "loop", "length/below"])
async def test_no_file(folder: Path, path: str) -> None:
    """An error of the system, or a link that leads nowhere."""
    with pytest.raises((OSError, RuntimeError)):
        await read(folder, path=path)


@pytest.mark.parametrize(("age_s", "is_stale"), [(59, False), (60, False), (61, True)])
async def test_stale_files(folder: Path, age_s: int, *, is_stale: bool) -> None:
    """A file that nothing writes any more is a failure, where the spec has a limit."""
    clock = VirtualClock()
    written_at_s = clock.now_ns() // NANOSECONDS - age_s
    os.utime(folder / "..data" / "length", (written_at_s, written_at_s))
    if not is_stale:
        assert await read(folder, clock, path="length", maxAgeSeconds=60) == 42
        return
    with pytest.raises(InvalidValue, match=r"^the file is stale: it was written 61 s ago, more than 60 s$"):
        await read(folder, clock, path="length", maxAgeSeconds=60)


async def test_without_the_flag_no_file_is_read(folder: Path) -> None:
    """Off by default."""
    with pytest.raises(InvalidSource, match=r"^files are not read: the controller has no --metric-source-folder$"):
        await read(None, path=str(folder / "length"))


def test_the_query(folder: Path) -> None:
    """What is read."""
    settings = {"path": "stats.json", "jsonPath": "$.queue"}
    assert FileSource(SourceConfig(settings, VirtualClock(), folder=folder)).query == "file stats.json $.queue"
