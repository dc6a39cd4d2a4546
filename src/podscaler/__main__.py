"""The program's entry point: hands over to the command line."""

import os

from podscaler.cli.main import cli


def main() -> None:
    """Run the command line; the exit status is the process's."""
    _fill_standard_descriptors()
    cli()


def _fill_standard_descriptors() -> None:
    """Open what was closed of 0, 1 and 2: the event loop would get these numbers, and libuv aborts on closing them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


if __name__ == "__main__":
    main()
