"""Lists and reads the reports of simulations and backtests in one folder.

`podscaler.dashboard.server` serves them to the page. Only regular files of the folder itself that end in `.json` are
reports; links are not followed.
"""

import os
import re
import stat
from pathlib import Path

import msgspec

from podscaler.base.errors import StatusError
from podscaler.observe.views import View

REPORT_MAX_BYTES = 64 * 1024 * 1024
REPORTS_MAX = 1000
"""How many reports are listed."""
_REPORT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}\.json")


class ReportView(View, frozen=True, gc=False):
    """One report: its file name, when the file was written (`at`, in ms), and its size (`bytes`)."""

    name: str
    at: int
    bytes: int


class ReportFolder:
    """The reports of a folder.

    Args:
        folder: None if there are no reports.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def list(self) -> list[ReportView]:
        """The newest reports, newest first. The call blocks. Raises StatusError if the folder cannot be read."""
        if self._folder is None:
            return []
        try:
            with os.scandir(self._folder) as entries:
                reports = [
                    (entry.name, entry.stat(follow_symlinks=False))
                    for entry in entries
                    if _REPORT_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
                ]
        except OSError as error:
            raise StatusError(f"the folder of reports cannot be read: {error.strerror}", code=404) from None
        views = [
            ReportView(name, file_status.st_mtime_ns // 1_000_000, file_status.st_size) for name, file_status in reports
        ]
        return sorted(views, key=lambda view: (-view.at, view.name))[:REPORTS_MAX]

    def read(self, name: str) -> bytes:
        """The JSON object of a report. The call blocks.

        Raises StatusError 404 if the name is not allowed, or the file is absent, too large or not a JSON object.
        """
        if self._folder is None or not _REPORT_NAME.fullmatch(name):
            raise StatusError(f"there is no report {name}", code=404)
        try:
            # O_NONBLOCK: opening a FIFO would wait for its writer
            descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise StatusError(f"the report {name} cannot be read: {error.strerror}", code=404) from None
        with os.fdopen(descriptor, "rb") as file:
            file_status = os.fstat(descriptor)
            if not stat.S_ISREG(file_status.st_mode) or file_status.st_size > REPORT_MAX_BYTES:
                raise StatusError(f"the report {name} is not a file of at most {REPORT_MAX_BYTES} bytes", code=404)
            body = file.read(REPORT_MAX_BYTES)
        try:
            msgspec.json.decode(body, type=dict)
        except (msgspec.DecodeError, RecursionError) as error:
            raise StatusError(f"the report {name} is not a JSON object: {error}", code=404) from None
        return body
