"""Defines the protocol of providers of external metrics, the data classes of values, and the errors of providers.

`adapter.server` serves the values. `providers.external_metrics` implements the protocol with Prometheus; other sources
of external metrics implement it, too; `adapter.assembly` puts them into order.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from podscaler.adapter.cluster.rest_mapper import MappedResource
from podscaler.api.machinery.quantity import Format, Quantity
from podscaler.api.machinery.selectors import Selector
from podscaler.base.errors import StatusError

_MILLI_MAX = 2**63
"""The first number of thousandths that does not fit into a signed 64-bit integer."""


@dataclass(frozen=True, slots=True)
class ExternalValue:
    """A value of an external metric.

    Attributes:
        quantity: the value.
        at_ns: when it was measured, in nanoseconds since the epoch.
        labels: the labels of its series.
        window_s: the seconds over which it is a rate; None: not stated.
    """

    quantity: Quantity
    at_ns: int
    labels: Mapping[str, str] = field(default_factory=dict)
    window_s: int | None = None


@dataclass(frozen=True, slots=True)
class ObjectValue:
    """A value of a custom metric, the object that it describes (`namespace` may be empty), and when it was measured."""

    resource: MappedResource
    namespace: str
    name: str
    quantity: Quantity
    at_ns: int


class ExternalMetricsProvider(Protocol):
    """A source of external metrics, which `adapter.server.external_api` reads."""

    def names(self) -> Collection[str]:
        """The names of all metrics, for discovery."""
        ...

    async def find_values(self, namespace: str, name: str, selector: Selector) -> Sequence[ExternalValue] | None:
        """The values whose labels a selector matches; None if this source has no metric of that name.

        Raises StatusError if the source cannot be read.
        """
        ...


def find_quantity(number: float, form: Format = Format.DECIMAL_SI) -> Quantity | None:
    """A number as a quantity in thousandths, cut; None if it is NaN, infinite or over 2^63.

    Differs: prometheus-adapter returns -9223372036854775808m for these, and for numbers over 2^63/1000, which are whole
    numbers here.
    """
    if math.isnan(number) or abs(number) >= _MILLI_MAX:
        return None
    milli = number * 1000.0
    if abs(milli) >= _MILLI_MAX:
        return Quantity(int(number), 0, form)
    return Quantity.from_milli(int(milli), form)


def fetch_error() -> StatusError:
    """500: the values cannot be read; the log has the cause, which users do not see."""
    return internal_error("unable to fetch metrics")


def internal_error(cause: str) -> StatusError:
    """500 with a cause in `details`, as API servers have it."""
    message = f"Internal error occurred: {cause}"
    details = {"causes": [{"message": cause}]}
    return StatusError(message, code=500, reason="InternalError", details=details)


def not_found(metric: str, resource: str, name: str = "") -> StatusError:
    """404: there is no such metric of a resource, or of the object with that name."""
    message = f"the server could not find the metric {metric} for {resource}"
    return StatusError(f"{message} {name}" if name else message, code=404, reason="NotFound")
