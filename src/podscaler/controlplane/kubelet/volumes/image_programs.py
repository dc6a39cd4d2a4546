"""Programs that images bring and machines may lack, as executable files in a folder behind the machine's own in PATH.

`startup` makes the folder; `launch` puts it at the end of a container's PATH, so that the machine's own programs win.
"""

import shlex
import sys
from pathlib import Path
from typing import Final

PROGRAMS: Final = ("wget",)
_SOURCES: Final = Path(__file__).parent.parent / "programs"


def make(folder: Path) -> None:
    """Write the programs, for the user of `up` alone, as everything in its data directory. Blocks. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    for name in PROGRAMS:
        command = shlex.join([sys.executable, "-I", "-S", str(_SOURCES / f"{name}.py")])
        file = folder / name
        file.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        file.chmod(0o700)
