"""Formats metric values for an autoscaler's status as quantity texts, in the API server's canonical form.

Called by the calculators of metrics. Examples: 1500 thousandths of a core are `1500m`, 2000 are `2`; 512 MiB of memory,
the only resource with binary suffixes, are `512Mi`. Another such resource is a case in `of_resource`. Amounts in
thousandths are below 2**63, so that P is the largest decimal suffix that is needed.

Source: docs/spec/decision.md 11.4 (Text of status quantities).
Differs: the HPA controller sends a multiple of 1000 bytes as a plain number, which the API server shortens (`73536000`
to `73536k`); the text made here is shortened already. The value is the same.
"""

_DECIMAL_SUFFIXES = ("m", "", "k", "M", "G", "T", "P")
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def decimal(milli: int) -> str:
    """The text of `milli` thousandths with the largest decimal suffix that keeps an integer."""
    if not milli:
        return "0"
    suffix_index = 0
    while milli % 1000 == 0:
        milli //= 1000
        suffix_index += 1
    return f"{milli}{_DECIMAL_SUFFIXES[suffix_index]}"


def binary(milli: int) -> str:
    """As `decimal`, but with a binary suffix where one keeps an integer (amounts of memory)."""
    whole, remainder_milli = divmod(milli, 1000)
    if remainder_milli or abs(whole) < 1024 or whole % 1024:
        return decimal(milli)
    suffix_index = 0
    while whole % 1024 == 0:
        whole //= 1024
        suffix_index += 1
    return f"{whole}{_BINARY_SUFFIXES[suffix_index]}"


def of_resource(resource: str, milli: int) -> str:
    """The text of `milli` thousandths of a resource: `cpu`, `memory`, or another one."""
    return binary(milli) if resource == "memory" else decimal(milli)
