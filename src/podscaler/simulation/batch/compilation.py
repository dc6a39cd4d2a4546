"""Compiles the functions of the batch engine to machine code, with Go's integer and float arithmetic.

All modules of this package that run within a batch use `compiled`; `entry_point` is for what Python calls.

The machine code of entry points is kept beside the modules (or in the user's cache directory) by numba. Numba itself
notices a change of the module of an entry point, but not of the modules that it calls; therefore the name of a kept
file contains a digest of the whole package.

Invariants: no fast math and no threads, so that results are those of `podscaler.core` to the last bit. Integers are 64
bits wide. Where they may wrap, `wrapped_sum` and `wrapped_product` are used.

Source: docs/spec/decision.md 1.1 (Integer and float semantics); numba's documentation of caching.
"""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., object])

INT32_MAX = 2**31 - 1
INT32_MIN = -(2**31)
INT64_MAX = 2**63 - 1

_OPTIONS: Any = {"error_model": "numpy", "_nrt": False}
"""No `_nrt`: arrays have no reference counts, which would take 14 of 15 parts of the time; none is made inside."""


def compiled(function: Function) -> Function:
    """The function as machine code, once it is called; a division of floats by zero gives an infinity or NaN."""
    return cast(Function, numba.njit(forceinline=True, **_OPTIONS)(function))


def entry_point(function: Function) -> Function:
    """As `compiled`, with the machine code kept for later processes where there is a directory for it."""
    function.__qualname__ = f"{function.__qualname__}-{_sources_digest()}"
    try:
        return cast(Function, numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:  # numba has no directory that it may write to
        return compiled(function)


def _sources_digest() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


@compiled
def wrap32(value: int) -> int:
    """As `podscaler.api.machinery.numbers.wrap32`, and so on for the functions below."""
    return int(np.int32(value))


@compiled
def wrapped_sum(first: int, second: int) -> int:
    """The low 64 bits of a sum; the compiler assumes that a plain sum of signed integers does not wrap."""
    return int(np.int64(np.uint64(first) + np.uint64(second)))


@compiled
def wrapped_product(first: int, second: int) -> int:
    """The low 64 bits of a product."""
    return int(np.int64(np.uint64(first) * np.uint64(second)))


@compiled
def divide_toward_zero(dividend: int, divisor: int) -> int:
    """As `numbers.divide_toward_zero`, wrapped; `divisor` is not 0."""
    if divisor == -1:  # the processor traps on the quotient of the least integer
        return wrapped_product(dividend, -1)
    quotient = dividend // divisor
    if dividend % divisor != 0 and (dividend < 0) != (divisor < 0):
        return quotient + 1
    return quotient


@compiled
def int32_of_float(value: float) -> int:
    """As `numbers.int32_of_float`."""
    if INT32_MIN - 1.0 < value < INT32_MAX + 1.0:
        return int(value)
    return INT32_MIN


@compiled
def ceil_int32(value: float) -> int:
    """As `numbers.ceil_int32`."""
    if INT32_MIN - 1.0 < value <= INT32_MAX:
        return math.ceil(value)
    return INT32_MIN


@compiled
def ceil_int32_saturating(value: float) -> int:
    """As `numbers.ceil_int32_saturating`."""
    return INT32_MAX if value > INT32_MAX else ceil_int32(value)
