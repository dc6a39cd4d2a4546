"""Reads the recorded autoscalers of a fleet, one at a time, from the files of lines into which recordings were split.

`podscaler.simulation.fleet.splitting` writes the files: each has all lines of some autoscalers, mixed.
`podscaler backtest --fleet` calls `of_manifest`, and sends each partition to a worker of `partition_runs`, which calls
`autoscalers`. That copies the lines of each autoscaler to a temporary file of its own. At most OPEN_FILES_MAX of them
are open; a file with more autoscalers is read once for each group of so many. They have no names, so that nothing
remains of a worker that is killed.
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

OPEN_FILES_MAX = 128
_MEMORY_MAX_BYTES = 256 * 1024
"""The lines of an autoscaler stay in memory up to this size, and are on disk beyond it."""


class RecordedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """The autoscalers of one file of lines; a `podscaler.simulation.fleet.autoscalers.Partition`.

    Attributes:
        part: the file's name and digest, and the keys of its autoscalers.
        path: of the file; workers on other machines need the same folder there.
        header: the first line of the recordings, which the file lacks.
        selection: the part of the recording that is used for every autoscaler; its `autoscaler` is not used.
    """

    part: SplitPart
    path: str
    header: RecordingHeader
    selection: RecordedSelection = RecordedSelection()

    @property
    def name(self) -> str:
        """The stem of the file of lines, and of that of the results."""
        return self.part.name

    @property
    def fingerprint(self) -> str:
        """A text that differs where the lines, the header or the selection do."""
        return msgspec.json.encode([self.part, self.header, self.selection]).decode()

    def autoscalers(self) -> Iterator[FleetAutoscaler | UnusableAutoscaler]:
        """The autoscalers in the order of their keys. Raises UsageError if the file cannot be read."""
        keys = self.part.keys
        for begin in range(0, len(keys), OPEN_FILES_MAX):
            yield from self._read_group(keys[begin : begin + OPEN_FILES_MAX])

    def _read_group(self, keys: Sequence[str]) -> Iterator[FleetAutoscaler | UnusableAutoscaler]:
        """The autoscalers with these keys, at most OPEN_FILES_MAX, by one pass over the file. Raises UsageError."""
        with ExitStack() as stack:
            lines_by_key: dict[str, IO[bytes]] = {
                key: stack.enter_context(tempfile.SpooledTemporaryFile(_MEMORY_MAX_BYTES)) for key in keys
            }
            self._distribute_lines(lines_by_key)
            for key, lines in lines_by_key.items():
                lines.seek(0)
                yield self._read_autoscaler(key, lines)
                lines.close()  # frees its memory before the next autoscaler is read

    def _distribute_lines(self, lines_by_key: dict[str, IO[bytes]]) -> None:
        """Copy each line to the temporary file of its autoscaler, if that is in the group. Raises UsageError."""
        try:
            with gzip.open(self.path, "rb") as mixed_lines:
                for line in mixed_lines:
                    own_lines = lines_by_key.get(splitting.key_of(line))
                    if own_lines is not None:
                        own_lines.write(line)
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(
                f"{self.path} cannot be read: {error}; workers on other machines need the output folder there"
            ) from None

    def _read_autoscaler(self, key: str, lines: IO[bytes]) -> FleetAutoscaler | UnusableAutoscaler:
        """The autoscaler with that key, of its lines without the header; or why it cannot be used."""
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
    """The partitions of a fleet's recordings, one for each file of lines.

    Args:
        manifest: the result of `splitting.split`.
        folder: the output folder of the run, in which that wrote the files.
        selection: the part of the recordings that is used.
    """
    lines_folder = (folder / splitting.FOLDER).resolve()
    return [
        RecordedPartition(
            part=part, path=str(lines_folder / f"{part.name}.jsonl.gz"), header=manifest.header, selection=selection
        )
        for part in manifest.parts
    ]
