"""Defines what differs between the Kubernetes versions whose HPA controller is emulated: a field for each difference.

`podscaler.core.model.settings` holds the Emulation that applies; the stages of the decision call its functions and do
not compare versions. A new version: add a constant and list it in VERSIONS. Example: the average of 5000 over 0 pods
overflows in 1.37 and is 5000 in 1.38.

Source: docs/spec/decision.md 13 (Differences of v1.38 alpha).
"""

from collections.abc import Callable

import msgspec

from podscaler.api.machinery import numbers, quantity
from podscaler.api.machinery.quantity import Quantity


class Emulation(msgspec.Struct, frozen=True):
    """The behaviour of one version.

    Attributes:
        version: `1.37`, ...
        ceil_int32: rounds a float up to a replica count; versions differ where it does not fit an int32.
        average_milli: (total in thousandths, replicas, may be 0) -> the average that status reports.
        parse_milli: the text of a quantity -> thousandths; versions differ in the rounding of negative numbers.
        milli_of_quantity: as `parse_milli`, for a parsed quantity.
        adds_overhead: whether a pod's `spec.overhead` adds to its pod-level requests.
    """

    version: str
    ceil_int32: Callable[[float], int]
    average_milli: Callable[[int, int], int]
    parse_milli: Callable[[str], int]
    milli_of_quantity: Callable[[Quantity], int]
    adds_overhead: bool


def _average_milli(total_milli: int, replicas: int) -> int:
    """The average, rounded up; over 0 replicas the conversion to an integer overflows, as in Go."""
    average = numbers.divide(float(total_milli), float(replicas))
    return numbers.int64_of_float(numbers.ceil(average))


def _average_or_total_milli(total_milli: int, replicas: int) -> int:
    """As `_average_milli`, but the total itself over 0 replicas."""
    return _average_milli(total_milli, replicas) if replicas else total_milli


def _milli_away_from_zero(quantity_text: str) -> int:
    """The thousandths of a quantity, rounded away from zero. Raises ValueError."""
    return quantity.parse(quantity_text).milli_value_away_from_zero()


V1_37 = Emulation(
    version="1.37",
    ceil_int32=numbers.ceil_int32,
    average_milli=_average_milli,
    parse_milli=quantity.milli,
    milli_of_quantity=Quantity.milli_value,
    adds_overhead=True,
)
V1_38 = Emulation(
    version="1.38",
    ceil_int32=numbers.ceil_int32_saturating,
    average_milli=_average_or_total_milli,
    parse_milli=_milli_away_from_zero,
    milli_of_quantity=Quantity.milli_value_away_from_zero,
    adds_overhead=False,
)

VERSIONS = {emulation.version: emulation for emulation in (V1_37, V1_38)}
"""By `major.minor`."""
