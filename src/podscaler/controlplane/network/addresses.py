"""Allocates loopback addresses to pods and Services, from a block that no other control plane of this machine uses.

`podscaler.cli.up.control_plane` claims the block of one `podscaler up`, the local control plane; the workers of pods
(`kubelet.pods`) and `cluster_ips` allocate in it. A new kind of address is a range of offsets. A block is 127.N.0.0/16:
127.N.0.1 is the node, 127.N.1.1 to 127.N.223.254 are pods, 127.N.224.1 to 127.N.254.254 are Services. An offset is the
last two octets as a number: 127.5.1.2 has the offset 0x0102 in block 5. Invariants:

1. A block is claimed by a name that the kernel releases when the process ends (an abstract Unix socket on Linux, else a
   locked file), so that nothing has to be cleaned up after kill -9.
2. A released address is allocated again as late as possible, so that a stale client does not reach another pod.
3. On a machine with 127.0.0.1 only (macOS without aliases), every pod and Service gets that address and `is_shared` is
   true; pods then need distinct ports.
4. Without a remembered block, the search starts at a number derived from the data directory, so that another `up` is
   unlikely to claim the block of one that is restarting.
"""

import contextlib
import errno
import fcntl
import os
import socket
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final

from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files

BLOCK_NUMBERS: Final = range(2, 255)
"""The second octets that may be claimed; machines use addresses in 127.0 and 127.1 (127.0.0.53, 127.0.1.1)."""
CLAIM_NAME_PREFIX = "podscaler.dev/block"
"""The prefix of the names of sockets and files that claim a block; tests set another one."""

LAST_BLOCK_ATTEMPTS, LAST_BLOCK_RETRY_S = 40, 0.05
"""How often the block of the last run is tried, and the seconds between."""
# the offsets of the three kinds of addresses; the ranges must not overlap, as `release` frees an offset in both
NODE_OFFSET: Final = 1
POD_OFFSETS: Final = range(0x0100, 0xE000)
SERVICE_OFFSETS: Final = range(0xE000, 0xFF00)
SHARED_ADDRESS: Final = "127.0.0.1"

Claim = socket.socket | IO[str]
"""The socket or locked file by which a block is claimed; closing it releases the block."""
_BROADCAST_LIKE_OCTETS: Final = (0x00, 0xFF)
"""Last octets that are not allocated: programs take such addresses for those of a network or a broadcast."""


class AddressesExhausted(UsageError):
    """All addresses for pods, or for Services, are in use."""


class _OffsetPool:
    """Allocates offsets of one range in round-robin order; offsets that end in .0 or .255 are left out."""

    def __init__(self, offsets: range) -> None:
        self._offsets = offsets
        self._next_index = 0
        self._used: set[int] = set()

    def allocate(self, preferred: int | None) -> int:
        """Reserve and return a free offset, the preferred one if it is free. Raises AddressesExhausted."""
        if preferred is not None and self.reserve(preferred):
            return preferred
        for _ in range(len(self._offsets)):
            offset = self._offsets[self._next_index]
            self._next_index = (self._next_index + 1) % len(self._offsets)
            if self.reserve(offset):
                return offset
        raise AddressesExhausted(f"all {len(self._offsets)} addresses of this kind are in use")

    def reserve(self, offset: int) -> bool:
        """Reserve exactly this offset; returns False if it is used, or not one of the range."""
        if offset not in self._offsets or offset in self._used or offset & 0xFF in _BROADCAST_LIKE_OCTETS:
            return False
        self._used.add(offset)
        return True

    def release(self, offset: int) -> None:
        """Free an offset; one that is not used is ignored."""
        self._used.discard(offset)


class AddressBlock:
    """The addresses of the pods and Services of one control plane.

    Args:
        number: N of 127.N.0.0/16.
        claim: the socket or file that claims the block until `close` (None in tests, and with a shared address).
        is_shared: whether 127.0.0.1 is the only address.
    """

    def __init__(self, number: int, *, claim: Claim | None = None, is_shared: bool = False) -> None:
        self.number = number
        self.is_shared = is_shared
        self._claim = claim
        self._pods = _OffsetPool(POD_OFFSETS)
        self._services = _OffsetPool(SERVICE_OFFSETS)
        self._pod_addresses: dict[str, str] = {}  # uid of the pod -> its address

    @property
    def cidr(self) -> str:
        """The block in CIDR notation, for messages and Node.spec.podCIDR."""
        return f"{SHARED_ADDRESS}/32" if self.is_shared else f"127.{self.number}.0.0/16"

    @property
    def node_address(self) -> str:
        """The address of the node itself (status.hostIP)."""
        return SHARED_ADDRESS if self.is_shared else self._address_at(NODE_OFFSET)

    def contains(self, address: str) -> bool:
        """Whether `address` belongs to this block."""
        return address == SHARED_ADDRESS if self.is_shared else self._offset_of(address) is not None

    def allocate_pod(self, uid: str, *, preferred: str | None = None) -> str:
        """The address of the pod with that metadata.uid, the same one until `release_pod`.

        `preferred` is the pod's address in an earlier run, perhaps of another block. Its offset is used again if it is
        free. Raises AddressesExhausted.
        """
        if self.is_shared:
            return SHARED_ADDRESS
        if uid not in self._pod_addresses:
            offset = self._pods.allocate(_parse_offset(preferred) if preferred else None)
            self._pod_addresses[uid] = self._address_at(offset)
        return self._pod_addresses[uid]

    def find_pod(self, uid: str) -> str | None:
        """The address of the pod `uid`, None if it has none; with `is_shared` 127.0.0.1, also for an unknown pod."""
        return self._pod_addresses.get(uid, SHARED_ADDRESS if self.is_shared else None)

    def release_pod(self, uid: str) -> None:
        """Release the address of the pod `uid`, if it has one."""
        address = self._pod_addresses.pop(uid, None)
        if address is not None:
            self.release(address)

    def allocate_service(self, *, preferred: str | None = None) -> str:
        """A free address for a Service; `preferred` as for pods. Raises AddressesExhausted."""
        if self.is_shared:
            return SHARED_ADDRESS
        return self._address_at(self._services.allocate(_parse_offset(preferred) if preferred else None))

    def reserve_service(self, address: str) -> bool:
        """Reserve exactly this address (a user's `spec.clusterIP`) for a Service; returns False if it is not free."""
        if self.is_shared:
            return address == SHARED_ADDRESS
        offset = self._offset_of(address)
        return offset is not None and self._services.reserve(offset)

    def release(self, address: str) -> None:
        """Free an address; one of another block, and an empty text, are ignored."""
        offset = self._offset_of(address)
        if offset is not None:  # it is used in one of the pools at most
            self._pods.release(offset)
            self._services.release(offset)

    def close(self) -> None:
        """Release the claim on the block."""
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _address_at(self, offset: int) -> str:
        """The address with this offset in the block."""
        return f"127.{self.number}.{offset >> 8}.{offset & 0xFF}"

    def _offset_of(self, address: str) -> int | None:
        """The offset of an address, None if it is not of this block."""
        return _parse_offset(address) if address.startswith(f"127.{self.number}.") else None


def claim_block(*, number_file: Path | None = None) -> AddressBlock:
    """Claim a block that no other process of this machine has.

    Args:
        number_file: a file with the number of the last block, which is tried first; the claimed number is written to
            it. Without a number in it, the search starts at one derived from the file's path. None: nothing is kept.

    Raises:
        UsageError: all blocks are claimed, or the file cannot be written.
        OSError: the file cannot be read, or the system refuses a claim.
    """
    if not _can_bind(f"127.{BLOCK_NUMBERS[0]}.0.1"):
        return AddressBlock(0, is_shared=True)
    last_number = _read_block_number(number_file)
    for number in _numbers_to_try(last_number, first_index=_first_index(number_file)):
        claim = _claim_last_block(number) if number == last_number else _claim_number(number)
        if claim is not None:
            block = AddressBlock(number, claim=claim)
            if number_file is not None and number != last_number:
                _write_block_number(number_file, block)
            return block
    raise UsageError(f"all {len(BLOCK_NUMBERS)} loopback address blocks of this machine are in use by other `up`s")


def _claim_last_block(number: int) -> Claim | None:
    """Claim the block of the last run; None if another process has it during all attempts. Blocks. Raises OSError.

    The start of another `up` has it for a moment, to remove the interfaces that a killed one left
    (`pod_networks.remove_orphaned_interfaces`). With another block the pods that still run would lose their addresses.
    """
    for _ in range(LAST_BLOCK_ATTEMPTS):
        claim = _claim_number(number)
        if claim is not None:
            return claim
        time.sleep(LAST_BLOCK_RETRY_S)
    return None


def try_claim_block(number: int) -> AddressBlock | None:
    """Claim the block 127.`number`.0.0/16 at once; None: another process has it. Raises OSError.

    `pod_networks` claims blocks for a moment, to remove the interfaces of an `up` that has ended.
    """
    claim = _claim_number(number)
    return None if claim is None else AddressBlock(number, claim=claim)


def _parse_offset(address: str) -> int | None:
    """The last two octets as a number, None for a text that is not a loopback address."""
    try:
        octets = socket.inet_aton(address)
    except OSError:
        return None
    return int.from_bytes(octets[2:], "big") if octets[0] == 127 else None


def _numbers_to_try(last_number: int | None, *, first_index: int) -> Iterable[int]:
    """All BLOCK_NUMBERS in the order in which they are tried.

    Args:
        last_number: the number of the last run, which is the first to try; None: there is none.
        first_index: the index in BLOCK_NUMBERS at which the others begin.
    """
    if last_number is not None:
        yield last_number
    ordered = [*BLOCK_NUMBERS[first_index:], *BLOCK_NUMBERS[:first_index]]
    yield from (number for number in ordered if number != last_number)


def _first_index(number_file: Path | None) -> int:
    """The index in BLOCK_NUMBERS at which the search starts: rarely the same for two files."""
    if number_file is None:
        return 0
    return zlib.crc32(os.fsencode(number_file.absolute())) % len(BLOCK_NUMBERS)


def _write_block_number(path: Path, block: AddressBlock) -> None:
    """Write the number of a claimed block; releases the claim, and raises UsageError, if that fails."""
    try:
        secret_files.write(path, f"{block.number}\n".encode())
    except UsageError:
        block.close()
        raise


def _read_block_number(path: Path | None) -> int | None:
    """The number that `_write_block_number` wrote, None if there is none or it is invalid. Raises OSError."""
    if path is None:
        return None
    try:
        number = int(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None
    return number if number in BLOCK_NUMBERS else None


def _can_bind(address: str) -> bool:
    """Whether this machine has the address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _claim_number(number: int) -> Claim | None:
    """Claim the block `number` and return the claim, None if another process has it. Raises OSError."""
    return _claim_socket(number) if sys.platform == "linux" else _claim_file(number)


def _claim_socket(number: int) -> Claim | None:
    """As `_claim_number`, by an abstract socket name, which belongs to the network namespace, as the addresses do."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0{CLAIM_NAME_PREFIX}/{number}")
    except OSError as error:
        claim.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return claim


def _claim_file(number: int) -> Claim | None:
    """As `_claim_number`, by a locked file; also None if the file is one of another user."""
    path = Path(tempfile.gettempdir(), f"{CLAIM_NAME_PREFIX.replace('/', '-')}-{number}.lock")
    with contextlib.suppress(PermissionError):
        claim = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+", encoding="ascii")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            claim.close()
            return None
        return claim
    return None
