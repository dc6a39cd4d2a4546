"""What goes wrong in the soak: each fault lasts some seconds, and ends with everything as it was.

`benchmarks.soak` injects one after the other.
"""

import asyncio
import random
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from benchmarks.cluster_measure import CLOCK
from benchmarks.gate import Gate
from benchmarks.soak_plane import SoakPlane

LASTS_S = 3.0
CUT_EVERY_S = 0.5
DELAY_S = 1.0
READY_WITHIN_S = 60.0


@dataclass(frozen=True)
class Fault:
    """One that was.

    Attributes:
        kind: which.
        began_s: when, monotonic.
        ended_s: when everything was as before.
    """

    kind: str
    began_s: float
    ended_s: float


def endless(rng: random.Random) -> Iterator[str]:
    """All kinds in one order, then all in another, and so on; a kind never comes twice in a row."""
    last = ""
    while True:
        order = rng.sample(sorted(KINDS), len(KINDS))
        if order[0] == last:
            order.reverse()
        last = order[-1]
        yield from order


async def inject(kind: str, plane: SoakPlane, gate: Gate) -> Fault:
    """Let it happen; returns after its end."""
    began_s = CLOCK.monotonic_s()
    await KINDS[kind](plane, gate)
    return Fault(kind, began_s, CLOCK.monotonic_s())


async def _restart(plane: SoakPlane, gate: Gate) -> None:
    await asyncio.to_thread(plane.restart)
    await asyncio.to_thread(_await_ready, gate)


def _await_ready(gate: Gate) -> None:
    deadline_s = CLOCK.monotonic_s() + READY_WITHIN_S
    while CLOCK.monotonic_s() < deadline_s:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{gate.port}/readyz", timeout=2) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit("the API server did not come back")


async def _cuts(_plane: SoakPlane, gate: Gate) -> None:
    for _ in range(round(LASTS_S / CUT_EVERY_S)):
        await asyncio.to_thread(gate.cut)
        await asyncio.sleep(CUT_EVERY_S)


async def _for_a_while(gate: Gate, name: str, value: float) -> None:
    setattr(gate, name, value)
    try:
        await asyncio.sleep(LASTS_S)
    finally:
        setattr(gate, name, 0)


async def _metrics_outage(_plane: SoakPlane, gate: Gate) -> None:
    await _for_a_while(gate, "metrics_refusal", 503)


async def _too_many_requests(_plane: SoakPlane, gate: Gate) -> None:
    await _for_a_while(gate, "refusal", 429)


async def _latency(_plane: SoakPlane, gate: Gate) -> None:
    await _for_a_while(gate, "delay_s", DELAY_S)


KINDS: dict[str, Callable[[SoakPlane, Gate], Awaitable[None]]] = {
    "API server killed": _restart,
    "connections cut": _cuts,
    "metrics out (503)": _metrics_outage,
    "429 to everything": _too_many_requests,
    "answers 1 s late": _latency,
}
