"""Reads command lines and numbers as Go programs do, for the test programs of the built-in images.

The programs that `agnhost` runs have an ArgumentParser each; the servers read numbers in requests with `parse_int`.

Source: Go's package flag (`-port=80`, `--port=80`, `--port 80`, `--http`, `--http=false`).
"""

import argparse


class ArgumentParser(argparse.ArgumentParser):
    """Parses flags in Go's forms: one dash or two, and boolean flags with or without a value."""

    def add_flag(self, name: str, default: str | int | bool) -> None:
        """Add a flag of the type of its default."""
        flags = (f"-{name}", f"--{name}")
        if isinstance(default, bool):
            self.add_argument(*flags, default=default, nargs="?", const=True, type=parse_bool)
        else:
            self.add_argument(*flags, default=default, type=type(default))


def parse_bool(flag_value: str) -> bool:
    """The value of a boolean flag. Raises ValueError."""
    values = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
    if flag_value.lower() not in values:
        raise ValueError(f"invalid boolean value {flag_value!r}")
    return values[flag_value.lower()]


def parse_int(number: str) -> int | None:
    """The integer that a text represents, None for a text that is no integer. It takes Python's forms (` 1_0`), too."""
    try:
        return int(number)
    except ValueError:
        return None
