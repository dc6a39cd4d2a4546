"""Reads a number from a file below a folder of the controller's machine, by a JSONPath query or as the whole text.

The folder is the value of `--metric-source-folder`; without the flag no file is read. Symbolic links are followed as
long as they stay below the folder (a mounted ConfigMap consists of such links); the file must be a regular one.
`podscaler.sources.source_types` finds FileSource by `spec.file` of a MetricSource. A new setting: a field of
FileSettings and of `podscaler.api.kinds.autoscaling.metric_source_schema`.

Source: open(2) (O_NOFOLLOW), path_resolution(7).
"""

import os
import stat
from contextlib import ExitStack
from pathlib import Path

from podscaler.base.clock import NANOSECONDS
from podscaler.sources.protocol import InvalidSource, InvalidValue, Number, SourceConfig, SystemSettings, parse_settings
from podscaler.sources.systems import json_path

SIZE_MAX_BYTES = 1024 * 1024


class FileSettings(SystemSettings, frozen=True):
    """The section `spec.file`.

    Attributes:
        path: the path of the file, relative to the folder.
        json_path: selects the number in JSON; empty if the whole text is a number.
        max_age_seconds: how old the file may be; None if it may have any age.
    """

    path: str
    json_path: str = ""
    max_age_seconds: int | None = None


class FileSource:
    """The ExternalSource of `spec.file`. Raises InvalidSource for invalid settings, or without a folder."""

    def __init__(self, config: SourceConfig) -> None:
        self._settings = settings = parse_settings(config, FileSettings)
        if config.folder is None:
            raise InvalidSource("files are not read: the controller has no --metric-source-folder")
        self._folder = config.folder
        self._clock = config.clock
        self._path = json_path.compile_path(settings.json_path) if settings.json_path else None

    @property
    def query(self) -> str:
        """Such as `file queue/length.json $.length`."""
        return f"file {self._settings.path} {self._settings.json_path}".rstrip()

    async def read(self) -> Number:
        """The number in the file. Raises as `_read_file`."""
        return await json_path.run_in_thread(self._read_file)

    async def close(self) -> None:
        """Do nothing: files are closed after each read."""

    def _read_file(self) -> Number:
        """The number in the file; blocks. Raises InvalidSource, InvalidValue and OSError."""
        path = _resolve_below(self._folder, self._settings.path)
        with ExitStack() as files:
            descriptor = _open_below(self._folder.resolve(), path, files)
            file_status = os.fstat(descriptor)
            if not stat.S_ISREG(file_status.st_mode):
                raise InvalidValue("it is no regular file")
            if file_status.st_size > SIZE_MAX_BYTES:
                raise InvalidValue(f"the file is larger than {SIZE_MAX_BYTES} bytes")
            self._check_age(file_status.st_mtime_ns)
            return json_path.number_in(os.read(descriptor, SIZE_MAX_BYTES), self._path)

    def _check_age(self, modified_at_ns: int) -> None:
        """Raise InvalidValue for a file that is too old."""
        age_s = (self._clock.now_ns() - modified_at_ns) // NANOSECONDS
        limit_s = self._settings.max_age_seconds
        if limit_s is not None and age_s > limit_s:
            raise InvalidValue(f"the file is stale: it was written {age_s} s ago, more than {limit_s} s")


def _resolve_below(folder: Path, name: str) -> Path:
    """The path of the file relative to the resolved folder, links followed. Raises InvalidSource if it is not below."""
    root = folder.resolve()
    target = (root / name).resolve()
    if not target.is_relative_to(root) or target == root:
        raise InvalidSource(f"{name} is not below the folder of --metric-source-folder")
    return target.relative_to(root)


def _open_below(root: Path, path: Path, files: ExitStack) -> int:
    """The descriptor of the file; `files` closes all that are opened. Raises OSError.

    `path` has no links, so a link that is made meanwhile makes the opening fail.
    """
    descriptor = _open_at(files, str(root), os.O_DIRECTORY, parent=None)
    for folder_name in path.parts[:-1]:
        descriptor = _open_at(files, folder_name, os.O_DIRECTORY, parent=descriptor)
    return _open_at(files, path.parts[-1], os.O_NONBLOCK, parent=descriptor)  # does not wait for a writer of a pipe


def _open_at(files: ExitStack, name: str, flags: int, parent: int | None) -> int:
    """The descriptor of `name` in the folder `parent`, which `files` closes. Raises OSError, also for a link."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=parent)
    files.callback(os.close, descriptor)
    return descriptor
