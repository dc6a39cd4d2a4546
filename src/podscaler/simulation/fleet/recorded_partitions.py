"""Reads the autoscalers of a file that `splitting` wrote, one at a time.

`podscaler backtest --fleet` calls `of_manifest`; workers of `partition_runs` read the partitions. The lines of each
autoscaler are put into a temporary file without a name, which disappears with the worker; at most OPEN_FILES of them
are open, else the file is read several times.
"""

import gzip
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import IO

import msgspec

from podscaler.api.typed.recording import RecordingHeader
from podscaler.base.errors import UsageError
from podscaler.simulation.evaluation import recording_scenario
from podscaler.simulation.evaluation.recording_scenario import RecordedSelection
from podscaler.simulation.fleet import splitting
from podscaler.simulation.fleet.autoscalers import FleetAutoscaler, UnusableAutoscaler
from podscaler.simulation.fleet.splitting import SplitManifest, SplitPart

OPEN_FILES = 128
_SPOOLED_BYTES = 256 * 1024
"""The lines of an autoscaler stay in memory up to this size, and are on disk beyond it."""


class RecordedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """The autoscalers of one file of lines.

    Attributes:
        path: of the file; workers on other machines need the same folder there.
        selection: the part of the recording that is used for every autoscaler.
    """

    part: SplitPart
    path: str
    header: RecordingHeader
    selection: RecordedSelection = RecordedSelection()

    @property
    def name(self) -> str:
        """As in Partition."""
        return self.part.name

    @property
    def fingerprint(self) -> str:
        """As in Partition."""
        return msgspec.json.encode([self.part, self.header, self.selection]).decode()

    def autoscalers(self) -> Iterator[FleetAutoscaler | UnusableAutoscaler]:
        """As in Partition."""
        keys = self.part.keys
        for begin in range(0, len(keys), OPEN_FILES):
            yield from self._read_autoscalers(keys[begin : begin + OPEN_FILES])

    def _read_autoscalers(self, keys: Sequence[str]) -> Iterator[FleetAutoscaler | UnusableAutoscaler]:
        """The autoscalers with these keys, at most OPEN_FILES, by one pass over the file."""
        with ExitStack() as stack:
            files: dict[str, IO[bytes]] = {
                key: stack.enter_context(tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)) for key in keys
            }
            self._distribute_lines(files)
            for key, file in files.items():
                file.seek(0)
                yield self._read_autoscaler(key, file)
                file.close()

    def _distribute_lines(self, files: dict[str, IO[bytes]]) -> None:
        """Write each line to the file of its autoscaler, if it has one. Raises UsageError."""
        try:
            with gzip.open(self.path, "rb") as lines:
                for line in lines:
                    file = files.get(splitting.key_of(line))
                    if file is not None:
                        file.write(line)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(
                f"{self.path} cannot be read: {error}; workers on other machines need the output folder there"
            ) from None

    def _read_autoscaler(self, key: str, lines: IO[bytes]) -> FleetAutoscaler | UnusableAutoscaler:
        """The autoscaler of these lines (without the header), or why it cannot be used."""
        selection = msgspec.structs.replace(self.selection, autoscaler=key)
        try:
            recorded_workload = recording_scenario.read(chain([msgspec.json.encode(self.header)], lines), selection)
        except UsageError as error:
            return UnusableAutoscaler(key, str(error))
        return FleetAutoscaler(
            key=key,
            scenario=recorded_workload.scenario,
            wire=recorded_workload.wire,
            notes=recorded_workload.assumptions,
        )


def of_manifest(manifest: SplitManifest, folder: Path, selection: RecordedSelection) -> list[RecordedPartition]:
    """The partitions of a folder that `splitting` filled."""
    lines = (folder / splitting.FOLDER).resolve()
    return [
        RecordedPartition(
            part=part, path=str(lines / f"{part.name}.jsonl.gz"), header=manifest.header, selection=selection
        )
        for part in manifest.parts
    ]
