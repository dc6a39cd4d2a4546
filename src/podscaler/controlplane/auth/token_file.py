"""Reads users of the API server from a static token file (`podscaler up --token-auth-file`).

`podscaler up` calls `read` in a thread, once at the start. The file is CSV with a user in each line: token, name, uid
and optionally the groups, separated by commas and therefore quoted; `_parse_row` reads it.

    31ada4fd-adec-460c-809a-9e56ceb75269,viewer,1001,"viewers,auditors"

Source: kube-apiserver's flag `--token-auth-file`. Differs: a duplicate token is an error; kube-apiserver takes the last
line.
"""

import csv
import logging
from collections.abc import Sequence
from pathlib import Path

from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files
from podscaler.controlplane.registry.users import User

COLUMNS_MIN = 3
PERMISSIONS_OF_OTHERS = 0o077
"""The bits of a file's mode that let its group or others access it."""

_log = logging.getLogger(__name__)


def read(path: Path) -> dict[str, User]:
    """The users by token. Blocks. Raises UsageError if the file is missing or unreadable, or a line is invalid."""
    content = secret_files.read(path)
    if content is None:
        raise UsageError(f"there is no token file {path}")
    if path.stat().st_mode & PERMISSIONS_OF_OTHERS:
        _log.warning("the token file %s may be read by others: its mode should be 0600", path)
    users: dict[str, User] = {}
    for line_number, row in enumerate(csv.reader(_lines(path, content)), start=1):
        if not row:
            continue
        token, user = _parse_row(row, f"{path}, line {line_number}")
        if token in users:
            raise UsageError(f"{path}, line {line_number}: this token is another user's already")
        users[token] = user
    return users


def _lines(path: Path, content: bytes) -> list[str]:
    """The lines of a token file. Raises UsageError unless it is UTF-8."""
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text in UTF-8") from error


def _parse_row(row: Sequence[str], location: str) -> tuple[str, User]:
    """The token and user of a row. Raises UsageError."""
    if len(row) < COLUMNS_MIN:
        raise UsageError(f"{location}: expected a token, a user name and a uid, separated by commas")
    token, name, uid = (cell.strip() for cell in row[:COLUMNS_MIN])
    if not token or not name:
        raise UsageError(f"{location}: the {'name' if token else 'token'} is empty")
    groups = row[COLUMNS_MIN].split(",") if len(row) > COLUMNS_MIN else []  # the optional fourth column
    return token, User(name, tuple(filter(None, map(str.strip, groups))), uid)
