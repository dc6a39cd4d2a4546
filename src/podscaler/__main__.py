"""The entry points of `podscaler`, `kubectl-podscaler` and `kubectl_complete-podscaler`, which pyproject.toml names."""

import os
import sys
from pathlib import Path

from podscaler.cli.main import cli, print_kubectl_proposals

KUBECTL_PLUGIN = "kubectl-podscaler"
"""The name of the program that kubectl runs as `kubectl podscaler`."""


def main() -> None:
    """Run the command line; the exit status is the process's."""
    _fill_standard_descriptors()
    is_plugin = Path(sys.argv[0]).name == KUBECTL_PLUGIN
    cli(prog_name="kubectl podscaler" if is_plugin else "podscaler")


def complete_for_kubectl() -> None:
    """Propose what may follow `kubectl podscaler WORD...`; the words are the arguments of the process."""
    print_kubectl_proposals(cli, sys.argv[1:])


def _fill_standard_descriptors() -> None:
    """Open those of the descriptors 0, 1 and 2 that are closed.

    Else the event loop would get these numbers, and libuv aborts on closing them.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


if __name__ == "__main__":
    main()
