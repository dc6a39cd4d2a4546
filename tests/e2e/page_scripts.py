"""The commands of pages, run as they stand there: the code blocks of a page are one script of its shell.

Called by the tests of the README and of the walkthroughs.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from up_process import Up

from patience import COMMAND_WITHIN_S

ROOT = Path(__file__).parents[2]


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of one language in a page, or in a part of it."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def section(text: str, title: str) -> str:
    """The part of a page below a heading of the second level."""
    (found,) = (part for part in re.split(r"^## ", text, flags=re.MULTILINE) if part.startswith(f"{title}\n"))
    return found


def run(up: Up, script: str, *, timeout_s: float = COMMAND_WITHIN_S, **environment: str) -> str:
    """What a script wrote to its output; it ends with its first command that fails, and so does the test.

    Args:
        up: whose kubeconfig its kubectl has.
        environment: further variables.
    """
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"KUBECONFIG": str(up.kubeconfig), "HOME": str(up.data_dir.parent), "PATH": programs, **environment}
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
