"""Defines types of command-line flags, with the errors of Go's flag parser, and flags that several commands share.

Used by the modules of this package and by commands. `--port=x` with the type INT32 is the UsageError `invalid argument
"x" for "--port" flag: strconv.ParseInt: parsing "x": invalid syntax`, as kube-controller-manager prints it. A new type:
a function `parse_x` that raises ValueError, and a `FlagType` with it. Flags of kube-controller-manager are `Option`s,
whose defaults are texts in Go's form; others may be plain options of click.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from podscaler.api.machinery import duration, names
from podscaler.base.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

_INTEGER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)")


class Option(NamedTuple):
    """The definition of a flag.

    Attributes:
        name: without the dashes.
        value_type: converts the text of the value.
        default: the text of the default; None if there is no default, or the help describes it.
        help_text: one phrase.
        is_list: whether the flag may be repeated; the value is a tuple then.
        is_switch: whether the flag takes no value.
        is_hidden: whether the help omits the flag.
    """

    name: str
    value_type: click.ParamType[Any]
    default: str | None
    help_text: str
    is_list: bool = False
    is_switch: bool = False
    is_hidden: bool = False

    def decorator(self) -> Callable[[Any], Any]:
        """The decorator that puts the flag on a click command."""
        return click.option(
            f"--{self.name}",
            type=self.value_type,
            default=() if self.is_list else self.default,
            show_default=bool(self.default),
            multiple=self.is_list,
            is_flag=self.is_switch,
            help=self.help_text,
            hidden=self.is_hidden,
        )


def flag_group(*options: Option | Callable[[Any], Any]) -> Callable[[F], F]:
    """A decorator that puts flags (or groups of them) on a command, which shows them in this order in its help."""
    decorators = [option.decorator() if isinstance(option, Option) else option for option in options]

    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def parse_int32(integer_text: str) -> int:
    """The integer of `12`, `0x1f`, `0b11` or `017` (octal), as Go reads it. Raises ValueError as `strconv.ParseInt`."""
    if not _INTEGER.fullmatch(integer_text):
        raise ValueError(f'strconv.ParseInt: parsing "{integer_text}": invalid syntax')
    digits = integer_text.lstrip("+-")
    is_octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    base = 8 if is_octal else 0  # 0: by the prefix 0x, 0b or 0o
    number = int(digits, base) * (-1 if integer_text[0] == "-" else 1)
    if not -(2**31) <= number < 2**31:
        raise ValueError(f'strconv.ParseInt: parsing "{integer_text}": value out of range')
    return number


def parse_float64(number_text: str) -> float:
    """The number; `inf` and `nan` too, as in Go. Raises ValueError, worded as Go's `strconv.ParseFloat`.

    Differs: hexadecimal numbers are rejected, and one that is too large is infinite.
    """
    try:
        if "_" in number_text or number_text != number_text.strip():  # Python accepts both, Go neither
            raise ValueError(number_text)
        return float(number_text)
    except ValueError as error:
        raise ValueError(f'strconv.ParseFloat: parsing "{number_text}": invalid syntax') from error


class FlagType(click.ParamType[Any]):
    """A type of flags whose text a function parses.

    Args:
        name: the type's name in the help (`duration`, `int32`, ...).
        parse: the function; the message of its ValueError is the end of the UsageError.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The parsed value. Raises UsageError."""
        del ctx
        flag = param.opts[0] if param is not None else self.name
        try:
            return self._parse(str(value))
        except ValueError as error:
            raise UsageError(f'invalid argument "{value}" for "{flag}" flag: {error}') from error


def parse_dns_label(label: str) -> str:
    """The label, the form of names of namespaces and Services. Raises ValueError for any other text."""
    if errors := names.dns_label_errors(label):
        raise ValueError(errors[0])
    return label


DURATION = FlagType("duration", duration.parse)
INT32 = FlagType("int32", parse_int32)
FLOAT64 = FlagType("float64", parse_float64)
NAMESPACE = FlagType("namespace", parse_dns_label)
SERVICE = FlagType("name", parse_dns_label)

kubeconfig_options = flag_group(
    click.option(
        "--kubeconfig",
        type=click.Path(),
        metavar="FILE",
        help="the cluster; default: KUBECONFIG, ~/.kube/config, or the pod's own",
    ),
    click.option("--context", metavar="NAME", help="the context of the kubeconfig; default: its current one"),
)
"""Puts the flags `kubeconfig` and `context` on a command."""
