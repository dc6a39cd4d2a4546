"""Which endpoint a connection goes to."""

import asyncio

import pytest

from podscaler.controlplane.network.balancer import MAX_COMPARED_ENDPOINTS, Backends, Balancer
from podscaler.testing import VirtualClock

A, B, C = ("127.9.1.1", 80), ("127.9.1.2", 80), ("127.9.1.3", 80)


def balancer(ready=(A, B, C), draining=(), affinity_s=None):
    made = Balancer(VirtualClock())
    made.replace(Backends(tuple(ready), tuple(draining)), affinity_s)
    return made


def test_equals_take_turns():
    """Short connections are spread evenly."""
    made = balancer()
    counts = {A: 0, B: 0, C: 0}
    for _ in range(9):
        address = made.acquire("x")
        counts[address] += 1
        made.release(address)
    assert counts == {A: 3, B: 3, C: 3}


def test_the_one_with_the_fewest_connections_is_taken():
    """Long connections are spread evenly, also after a new endpoint has come."""
    made = balancer(ready=(A, B))
    for _ in range(4):
        made.acquire("x")
    made.replace(Backends((A, B, C)))
    assert {made.acquire("x"), made.acquire("x")} == {C}
    assert made.connections == {A: 2, B: 2, C: 2}


def test_all_that_were_tried_are_passed_over():
    """None once everyone has refused."""
    made = balancer(ready=(A, B))
    first = made.acquire("x")
    second = made.acquire("x", {first})
    assert ({first, second}, made.acquire("x", {A, B})) == ({A, B}, None)


@pytest.mark.parametrize(
    ("ready", "draining", "expected"),
    [
        pytest.param((A,), (B,), A, id="ready ones first"),
        pytest.param((), (B,), B, id="else those that terminate but serve"),
        pytest.param((), (), None, id="else nobody"),
    ],
)
def test_who_is_a_candidate(ready, draining, expected):
    """Terminating endpoints are the last resort."""
    assert balancer(ready, draining).acquire("x") == expected


def test_connections_of_an_endpoint_that_left_still_count():
    """It drains; its count goes with its last connection."""
    made = balancer(ready=(A,))
    made.acquire("x")
    made.replace(Backends((B,)))
    assert made.connections == {A: 1}
    made.release(A)
    assert made.connections == {}


def test_a_choice_costs_the_same_for_any_number_of_endpoints():
    """Of thousands only some are compared, and all get their turn."""
    many = [(f"127.9.{n // 250}.{n % 250}", 80) for n in range(1000)]
    made = balancer(ready=many)
    for _ in range(1000):
        made.acquire("x")
    assert max(made.connections.values()) <= 2
    assert len(made.connections) > 1000 - MAX_COMPARED_ENDPOINTS


def test_affinity():
    """A client comes back to its endpoint, until its time is over or the endpoint has left."""
    made = balancer(affinity_s=60)
    first = made.acquire("x")
    assert [made.acquire("x") for _ in range(3)] == [first] * 3
    left = tuple({A, B, C} - {first})
    made.replace(Backends(left), 60)
    assert made.acquire("x") in left


async def test_affinity_ends():
    """After the timeout the least loaded one is taken."""
    clock = VirtualClock()
    made = Balancer(clock)
    made.replace(Backends((A, B)), 60)
    first = made.acquire("x")
    await clock.advance(61)
    assert made.acquire("x") != first


async def test_a_change_wakes_those_who_wait():
    """Other endpoints: try again."""
    made = balancer(ready=(A,))
    made.replace(Backends((A,)))
    waiting = asyncio.create_task(made.wait_for_change())
    await asyncio.sleep(0)
    assert not waiting.done()
    made.replace(Backends((B,)))
    await waiting
