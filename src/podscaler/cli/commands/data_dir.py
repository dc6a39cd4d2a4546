"""Finds the absolute path of the data directory: the value of `--data-dir`, or its default.

Called by `podscaler.cli.up.up` and `podscaler.cli.commands.backup`.
"""

import os
from pathlib import Path


def default_data_dir() -> Path:
    """The data directory without the flag: `podscaler` in the user's data folder (XDG_DATA_HOME)."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "podscaler"


def absolute_path(path: Path | None) -> Path:
    """The data directory that a flag names, or (None) the default, as an absolute path; `~` is expanded."""
    return (path or default_data_dir()).expanduser().absolute()
