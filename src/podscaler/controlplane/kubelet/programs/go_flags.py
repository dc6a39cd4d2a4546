"""Reads command lines, numbers and durations as Go programs do, for the test programs of the built-in images.

The programs that `agnhost` runs have an ArgumentParser each; the servers read numbers and durations in requests with
`parse_int` and `parse_duration`. A new type of flags: a case in `ArgumentParser.add_flag`.

Source: Go's package flag (`-port=80`, `--port=80`, `--port 80`, `--http`, `--http=false`).
"""

import argparse
import re
from typing import Final

_UNIT_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""The units of Go's durations in seconds."""


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


def parse_duration(duration: str) -> float | None:
    """The seconds of a Go duration such as `1m30s`, None for a text that is none; signs and `µs` are not supported."""
    if duration == "0":
        return 0.0
    numbers_and_units = re.findall(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|ms|s|m|h)", duration)
    is_matched_fully = "".join(number + unit for number, unit in numbers_and_units) == duration
    if not numbers_and_units or not is_matched_fully:
        return None
    return sum(float(number) * _UNIT_S[unit] for number, unit in numbers_and_units)
