"""A trace from its JSON form, as `podscaler replay --trace` and `podscaler explain -o json` write it.

Called by `podscaler explain`. JSON has neither infinities nor NaN: ratios that are none there are computed again from
the numbers beside them.

Source: docs/trace.md.
"""

from typing import Any

import msgspec

from podscaler.api.machinery import numbers
from podscaler.core.model.trace import Trace


def read(value: Any) -> Trace:
    """The trace in plain JSON data. Raises ValueError naming the part that cannot be used."""
    if isinstance(value, dict) and isinstance(value.get("metrics"), list):
        value = value | {"metrics": [_with_ratios(each) for each in value["metrics"]]}
    return msgspec.convert(value, Trace)


def _with_ratios(metric: Any) -> Any:
    calculation = metric.get("calculation") if isinstance(metric, dict) else None
    if not isinstance(calculation, dict):
        return metric
    target = metric.get("target") or 0
    if "ratio" in calculation:
        return metric | {"calculation": _of_value(calculation, target)}
    readings = {look: _of_reading(calculation[look], target) for look in ("first", "second") if calculation.get(look)}
    return metric | {"calculation": calculation | readings}


def _of_value(calculation: dict[str, Any], target: int) -> dict[str, Any]:
    if calculation["ratio"] is not None:
        return calculation
    divisor = float(target)
    if calculation.get("method") == "OfAverage":
        divisor *= float(calculation.get("replicas", 0))
    return calculation | {"ratio": numbers.divide(float(calculation.get("usageMilli", 0)), divisor)}


def _of_reading(reading: Any, target: int) -> Any:
    if not isinstance(reading, dict) or reading.get("ratio", 0.0) is not None:
        return reading
    return reading | {"ratio": numbers.divide(float(reading.get("current", 0)), float(target))}
