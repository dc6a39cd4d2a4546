"""Where `up` keeps everything: the flag `--data-dir` of the commands that use it."""

import os
from pathlib import Path


def default_data_dir() -> Path:
    """Where `up` keeps everything unless told otherwise: the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "podscaler"


def absolute(path: Path | None) -> Path:
    """The data directory that a flag names, or the default, as an absolute path."""
    return (path or default_data_dir()).expanduser().absolute()
