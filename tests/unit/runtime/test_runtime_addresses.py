"""Loopback addresses of pods and services."""

import os
from pathlib import Path

import pytest

from podscaler.controlplane.network import addresses
from podscaler.controlplane.network.addresses import AddressBlock, AddressesExhausted


@pytest.fixture(autouse=True)
def claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other processes of this machine claim is not in the way."""
    monkeypatch.setattr(addresses, "CLAIM_NAME_PREFIX", f"podscaler.dev/tests/{os.getpid()}")


def test_pods_and_services_take_addresses_of_their_own_ranges() -> None:
    """A pod keeps its address while it lives; the node, pods and services never share one."""
    block = AddressBlock(7)
    found = [
        block.node_address,
        block.allocate_pod("a"),
        block.allocate_pod("b"),
        block.allocate_pod("a"),
        block.allocate_service(),
        block.allocate_service(),
    ]
    assert found == ["127.7.0.1", "127.7.1.1", "127.7.1.2", "127.7.1.1", "127.7.224.1", "127.7.224.2"]


def test_a_released_address_is_given_out_as_late_as_possible() -> None:
    """A stale client of a dead pod meets nobody."""
    block = AddressBlock(7)
    first = block.allocate_pod("a")
    block.release_pod("a")
    assert (first, block.allocate_pod("b"), block.allocate_pod("c")) == ("127.7.1.1", "127.7.1.2", "127.7.1.3")


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        pytest.param("127.7.3.9", "127.7.3.9", id="the address of the last run"),
        pytest.param("127.9.3.9", "127.7.3.9", id="its place in another block"),
        pytest.param("127.7.224.1", "127.7.1.1", id="an address that is no pod's"),
        pytest.param("10.0.0.1", "127.7.1.1", id="not a loopback address"),
        pytest.param("nonsense", "127.7.1.1", id="not an address"),
        pytest.param("127.7.3.255", "127.7.1.1", id="a broadcast address"),
    ],
)
def test_a_preferred_address_is_kept_where_it_can_be(preferred: str, expected: str) -> None:
    """After a restart a pod has the address that its clients know."""
    assert AddressBlock(7).allocate_pod("a", preferred=preferred) == expected


def test_no_two_pods_get_the_same_preferred_address() -> None:
    """A preference is not a claim."""
    block = AddressBlock(7)
    assert block.allocate_pod("a", preferred="127.7.3.9") != block.allocate_pod("b", preferred="127.7.3.9")


def test_addresses_run_out_with_an_error() -> None:
    """The last address is followed by a refusal, and a released one ends the shortage."""
    block = AddressBlock(7)
    taken = [block.allocate_service() for _ in range(31 * 254)]
    assert len(set(taken)) == 31 * 254
    with pytest.raises(AddressesExhausted):
        block.allocate_service()
    block.release(taken[5])
    assert block.allocate_service() == taken[5]


def test_a_users_cluster_ip_is_reserved_once() -> None:
    """spec.clusterIP may name a free service address of this block and nothing else."""
    block = AddressBlock(7)
    wanted = ["127.7.225.1", "127.7.225.1", "127.7.1.1", "127.8.225.1", "10.0.0.1"]
    assert [block.reserve_service(address) for address in wanted] == [True, False, False, False, False]


def test_a_shared_address_is_everyones() -> None:
    """Where the machine has one loopback address, all pods and services get it."""
    block = AddressBlock(0, is_shared=True)
    assert (block.allocate_pod("a"), block.allocate_service(), block.node_address, block.cidr) == (
        "127.0.0.1",
        "127.0.0.1",
        "127.0.0.1",
        "127.0.0.1/32",
    )


def test_two_claims_never_get_the_same_block() -> None:
    """Several `up` at once have blocks of their own, and a closed claim is free again."""
    first, second = addresses.claim_block(), addresses.claim_block()
    assert first.number != second.number
    first.close()
    third = addresses.claim_block()
    assert third.number == first.number
    second.close()
    third.close()


def test_the_last_block_is_tried_first(tmp_path: Path) -> None:
    """The block's number is kept in a file, and a file with nonsense in it does no harm."""
    remember = tmp_path / "block"
    remember.write_text("201")
    block = addresses.claim_block(number_file=remember)
    assert block.number == 201
    block.close()
    remember.write_text("nonsense")
    other = addresses.claim_block(number_file=remember)
    assert remember.read_text() == f"{other.number}\n"
    other.close()


def test_the_last_block_is_awaited_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another `up` has it while it removes the interfaces of a killed one; one that keeps it has it."""
    remember = tmp_path / "block"
    remember.write_text("201")
    holder = addresses.try_claim_block(201)
    assert holder is not None
    monkeypatch.setattr(addresses, "LAST_BLOCK_RETRY_S", 0.0)
    other = addresses.claim_block(number_file=remember)
    remember.write_text("201")
    monkeypatch.setattr("time.sleep", lambda _seconds: holder.close())
    same = addresses.claim_block(number_file=remember)
    assert (other.number != 201, same.number) == (True, 201)
    other.close()
    same.close()


def test_a_block_that_is_let_go_is_rarely_the_next_to_be_taken(tmp_path: Path) -> None:
    """Between the end of an `up` and its next start, others that start look elsewhere first."""
    taken = set()
    for index in range(20):
        block = addresses.claim_block(number_file=tmp_path / f"block-{index}")
        taken.add(block.number)
        block.close()
    assert len(taken) > 10
