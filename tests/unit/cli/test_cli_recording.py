"""`--record` on the command line: sizes, headers, what makes no sense."""

import gzip
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from podscaler.api.typed import recording as format_
from podscaler.base.errors import UsageError
from podscaler.cli import main
from podscaler.cli.options import recording
from podscaler.controller.options.settings import ControllerSettings
from podscaler.testing import VirtualClock


def _options(*arguments: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    @click.command()
    @recording.record_options
    def command(**options: object) -> None:
        found.append(options)

    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return found[0]


@pytest.mark.parametrize(("text", "size_bytes"), [("64Mi", 64 * 2**20), ("10k", 10_000), ("4Ki", 4096)])
def test_sizes(text: str, size_bytes: int) -> None:
    """Sizes are Kubernetes quantities of bytes."""
    assert recording.parse_size(text) == size_bytes


@pytest.mark.parametrize(("text", "said"), [("4095", "must be at least 4Ki"), ("big", "quantities must match")])
def test_sizes_that_make_no_sense(text: str, said: str) -> None:
    """The sentence names flag and value."""
    with pytest.raises(UsageError, match=f'invalid argument "{text}" for "--record-max-size" flag: {said}'):
        _options("--record-max-size", text)


async def test_the_header_has_all_settings(tmp_path: Path) -> None:
    """A reader finds every flag of the controller under its name, and the version."""
    settings = ControllerSettings(tolerance=0.2)
    file = recording.record_file(_options("--record", str(tmp_path / "r.gz")), settings)
    async with recording.open_recording(file, VirtualClock()) as kept:
        assert kept.is_on
    header = format_.read_header(gzip.decompress((tmp_path / "r.gz").read_bytes()))
    assert (header.kubernetes, header.flags) == ("1.37.0", settings.flags)


async def test_without_a_file_nothing_is_recorded() -> None:
    """The flag is off unless given."""
    assert recording.record_file(_options(), ControllerSettings()) is None
    async with recording.open_recording(None, VirtualClock()) as kept:
        assert not kept.is_on


def test_an_up_without_an_autoscaler_has_nothing_to_record(tmp_path: Path) -> None:
    """The two flags contradict each other."""
    result = CliRunner().invoke(main.cli, ["up", "--without-autoscaler", "--record", str(tmp_path / "r.gz")])
    assert (result.exit_code, "--record needs the autoscaler" in result.output) == (2, True)
