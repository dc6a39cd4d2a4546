"""The differences between versions of Kubernetes as records: each difference is a field.

`podscaler.core.model.settings` holds the record that applies; the stages of the decision do not compare versions.

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
        ceil_int32: a float rounded up to a replica count; the difference is at overflow.
        average_milli: the reported average of a total over a number of pods that may be 0.
        parse_milli: thousandths of a quantity's text; the difference is the rounding of negative numbers.
        milli_of_quantity: the same for a quantity.
        adds_overhead: whether `spec.overhead` counts where a pod has pod-level requests.
    """

    version: str
    ceil_int32: Callable[[float], int]
    average_milli: Callable[[int, int], int]
    parse_milli: Callable[[str], int]
    milli_of_quantity: Callable[[Quantity], int]
    adds_overhead: bool


def _average(total_milli: int, replicas: int) -> int:
    average = numbers.divide(float(total_milli), float(replicas))
    return numbers.int64_of_float(numbers.ceil(average))


def _average_or_total(total_milli: int, replicas: int) -> int:
    return _average(total_milli, replicas) if replicas else total_milli


def _milli_away_from_zero(text: str) -> int:
    return quantity.parse(text).milli_value_away_from_zero()


V1_37 = Emulation(
    version="1.37",
    ceil_int32=numbers.ceil_int32,
    average_milli=_average,
    parse_milli=quantity.milli,
    milli_of_quantity=Quantity.milli_value,
    adds_overhead=True,
)
V1_38 = Emulation(
    version="1.38",
    ceil_int32=numbers.ceil_int32_saturating,
    average_milli=_average_or_total,
    parse_milli=_milli_away_from_zero,
    milli_of_quantity=Quantity.milli_value_away_from_zero,
    adds_overhead=False,
)

VERSIONS = {each.version: each for each in (V1_37, V1_38)}
