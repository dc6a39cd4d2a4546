"""A network namespace for each pod, joined to the node by a veth pair and a bridge, where the machine allows it.

`kubelet.node_agent` opens one `PodNetworks` at its start; `kubelet.pods.pod_worker` adds a namespace before it starts
containers, and the launcher joins it. The addresses stay those of the address block (127.N.0.0/16), so that they are
the same with and without namespaces:

1. In the node's namespace, a route to the pod's /32 leads to the bridge. It is in the table `local`, where it is more
   specific than 127.0.0.0/8. All other addresses of the block stay local: node, Services, addresses of no pod.
2. In the pod's namespace, 127.N.0.0/16 leads to the bridge in the same way, and 127.0.0.1 is the pod's own.
3. `route_localnet` is set on these interfaces only, so that they accept loopback addresses.
4. A namespace has no name: `up` holds it open by a descriptor. After kill -9 the kernel removes it with its veth pair
   when its last process has ended; the bridge with its routes is removed by the next `up` of root, whatever network
   it gives its pods.

A new route or option of the node's side goes into `PodNetworks.add`, one of the pod's side into `_make_namespace`.

Source: network_namespaces(7), veth(4), ip-route(8); route_localnet in Documentation/networking/ip-sysctl.rst (Linux).
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from podscaler.base.errors import PodscalerError
from podscaler.controlplane.network import addresses
from podscaler.controlplane.network.addresses import AddressBlock

CLONE_NEWNET: Final = 0x4000_0000
"""The flag of setns(2) and unshare(2) for a network namespace (linux/sched.h)."""
COMMAND_TIMEOUT_S: Final = 30.0
"""For one call of ip(8)."""
TRY_TIMEOUT_S: Final = 2.0
"""For the connection by which `open` tries the network."""
SEARCH_PATH: Final = "/usr/sbin:/sbin:/usr/bin:/bin"
"""The folders in which ip(8) is searched: PATH of a user may lack /sbin."""
FORWARDING_TIMEOUT_S: Final = 10.0
FORWARDING_POLL_S: Final = 0.001
_BRIDGE_NAME: Final = re.compile("podscaler(?P<block>[1-9][0-9]*)")
_IPV4_OPTIONS: Final = Path("/proc/sys/net/ipv4")
_INTERFACES: Final = Path("/sys/class/net")
_FORWARDING: Final = "3"
"""BR_STATE_FORWARDING of linux/if_bridge.h."""

Result = TypeVar("Result")
_log = logging.getLogger(__name__)


class PodNetworkError(PodscalerError):
    """The machine does not let `up` make a network namespace, or connect it."""


class PodNetworks:
    """The network namespaces of the pods of one node.

    Args:
        block: the addresses of node and pods, which this `up` has claimed.
    """

    def __init__(self, block: AddressBlock) -> None:
        self._block = block
        self._bridge = _bridge_name(block)
        self._namespaces: dict[str, int] = {}  # address of the pod -> descriptor of its namespace
        self._lock = asyncio.Lock()

    def open(self) -> None:
        """Make the bridge, and try one namespace with a connection to the node. Blocks. Raises PodNetworkError."""
        if sys.platform != "linux" or self._block.is_shared:
            raise PodNetworkError("only Linux has network namespaces")
        if os.geteuid() != 0:
            raise PodNetworkError("only root may connect network namespaces to the machine")
        remove_orphaned_interfaces(self._block)
        try:
            _run_ip([f"link add name {self._bridge} type bridge", f"link set {self._bridge} up"])
            _set_option(f"conf/{self._bridge}/route_localnet", 1)
            self._try_connection()
        except (PodNetworkError, OSError) as error:
            remove_orphaned_interfaces(self._block)
            raise PodNetworkError(f"network namespaces cannot be used here: {error}") from error

    async def ensure(self, address: str) -> None:
        """Make the namespace of the pod at `address` unless there is one, in a thread. Raises PodNetworkError."""
        async with self._lock:
            if address not in self._namespaces:
                await asyncio.to_thread(self.add, address)

    async def discard(self, address: str) -> None:
        """Remove the namespace of the pod at `address`, if there is one, in a thread. Raises PodNetworkError."""
        async with self._lock:
            if address in self._namespaces:
                await asyncio.to_thread(self.remove, address)

    def namespace_path(self, address: str) -> str:
        """The file of /proc by which the namespace of the pod at `address` is joined; empty: it has none."""
        descriptor = self._namespaces.get(address)
        return "" if descriptor is None else f"/proc/{os.getpid()}/fd/{descriptor}"

    def open_socket(self, address: str) -> socket.socket:
        """A TCP socket in the namespace of the pod at `address`, which has one. Blocks. Raises OSError."""
        descriptor = self._namespaces[address]

        def enter_and_open() -> socket.socket:
            _check_result(_load_libc().setns(descriptor, CLONE_NEWNET))
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM)

        return _run_in_own_thread(enter_and_open)

    def add(self, address: str) -> None:
        """Make the namespace of the pod at `address`, which has none: `ensure` without a check. Blocks.

        Raises PodNetworkError.
        """
        try:
            descriptor = _run_in_own_thread(lambda: self._make_namespace(address))
        except OSError as error:
            raise PodNetworkError(f"the pod's network namespace cannot be made: {error.strerror or error}") from error
        self._namespaces[address] = descriptor
        try:
            _run_ip(
                [
                    f"link set {self._interface_name(address)} master {self._bridge} up",
                    f"route replace table local {address}/32 dev {self._bridge} src {self._block.node_address}",
                ]
            )
            _await_forwarding(self._interface_name(address))
        except (OSError, PodNetworkError) as error:  # the next attempt begins anew
            with contextlib.suppress(PodNetworkError):
                self.remove(address)
            raise PodNetworkError(f"the pod's network namespace cannot be made: {error}") from error

    def remove(self, address: str) -> None:
        """Remove the namespace of the pod at `address`, which has one, with its interface and route. Blocks.

        Raises PodNetworkError.
        """
        descriptor = self._namespaces.pop(address)
        route = f"{address}/32 dev {self._bridge}"
        try:  # before the descriptor is closed: the kernel removes the interface of a namespace some time after its end
            _run_ip([f"link delete {self._interface_name(address)}", f"route delete table local {route}"])
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Remove all namespaces, and the bridge. Blocks. Raises PodNetworkError."""
        try:
            remove_orphaned_interfaces(self._block)
        finally:
            for descriptor in self._namespaces.values():
                os.close(descriptor)
            self._namespaces.clear()

    def _make_namespace(self, address: str) -> int:
        """Make a namespace with its interface configured; returns its descriptor. The thread stays in it.

        Raises OSError, PodNetworkError.
        """
        _check_result(_load_libc().unshare(CLONE_NEWNET))
        _set_option("conf/all/route_localnet", 1)
        _set_option("ip_unprivileged_port_start", 0)
        _run_ip(
            [
                "link set lo up",
                # the node's end is made in the namespace of the main thread of `up`, which is the node's
                f"link add eth0 type veth peer name {self._interface_name(address)} netns {os.getpid()}",
                f"address add {address}/32 dev eth0",
                "link set eth0 up",
                f"route add table local {self._block.cidr} dev eth0 src {address}",
            ]
        )
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def _interface_name(self, address: str) -> str:
        """The name of the node's end of the pod's veth pair; the kernel allows 15 characters."""
        return _interface_prefix(self._block) + socket.inet_aton(address)[2:].hex()

    def _try_connection(self) -> None:
        """Connect from a namespace to the node: a filter of packets or the kernel may prevent it.

        Raises OSError, PodNetworkError.
        """
        node_address = self._block.node_address
        unused_address = f"{node_address.rpartition('.')[0]}.2"  # pods get 127.N.1.1 and higher ones
        self.add(unused_address)
        with socket.create_server((node_address, 0)) as server, self.open_socket(unused_address) as client:
            client.settimeout(TRY_TIMEOUT_S)
            client.connect(server.getsockname())
        self.remove(unused_address)


def remove_orphaned_interfaces(block: AddressBlock) -> None:
    """Remove the interfaces that earlier `up`s have left: of this block, and of blocks that no process has. Blocks.

    Interfaces of this block would take the connections to its new pods: if they cannot be removed, PodNetworkError is
    raised; other ones are logged. Raises OSError if the system refuses the claim of a block.
    """
    _remove_interfaces(block)
    for number in _blocks_with_bridge() - {block.number}:
        unused = addresses.try_claim_block(number)
        if unused is None:  # a running `up` has that block
            continue
        try:
            _remove_interfaces(unused)
        except PodNetworkError as error:
            _log.warning("interfaces of an earlier `up` remain (%s): %s", unused.cidr, error)
        finally:
            unused.close()


def _remove_interfaces(block: AddressBlock) -> None:
    """Remove the bridge and the interfaces of a block. Raises PodNetworkError."""
    try:
        _run_ip(f"link delete {name}" for name in _interfaces_of(block))
    except PodNetworkError:  # one may have gone meanwhile, with the last process of its namespace
        if _interfaces_of(block):
            raise


def _blocks_with_bridge() -> set[int]:
    """The numbers of the blocks that have a bridge on this machine; none for other users than root.

    Only root can remove bridges.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        return set()
    matches = (_BRIDGE_NAME.fullmatch(name) for _, name in socket.if_nameindex())
    return {int(match["block"]) for match in matches if match} & set(addresses.BLOCK_NUMBERS)


def _interfaces_of(block: AddressBlock) -> list[str]:
    """The names of the bridge and of the node's ends of the veth pairs of a block, as far as they exist."""
    names = [name for _, name in socket.if_nameindex()] if sys.platform == "linux" else []
    return [name for name in names if name == _bridge_name(block) or name.startswith(_interface_prefix(block))]


def _bridge_name(block: AddressBlock) -> str:
    """The name of the bridge of a block; _BRIDGE_NAME matches it."""
    return f"podscaler{block.number}"


def _interface_prefix(block: AddressBlock) -> str:
    """How the names of the node's ends of the veth pairs of a block begin."""
    return f"ps{block.number}-"


def _run_ip(commands: Iterable[str]) -> None:
    """Run these commands of ip(8), each without the word `ip`. Raises PodNetworkError if one of them fails."""
    batch = "".join(f"{command}\n" for command in commands)
    if not batch:
        return
    program = shutil.which("ip", path=SEARCH_PATH)
    if program is None:
        raise PodNetworkError("the program `ip` (package iproute2) is not installed")
    argv = [program, "-force", "-batch", "-"]  # -force: go on after an error, which the exit status reports
    try:
        completed = subprocess.run(  # noqa: S603  no shell; the lines have addresses and names that are made here
            argv, input=batch, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PodNetworkError(f"{program}: {error}") from error
    if completed.returncode != 0:
        raise PodNetworkError(f"ip: {' '.join(completed.stderr.split())}")


def _await_forwarding(interface: str) -> None:
    """Wait until the bridge forwards for an interface, which the kernel decides some milliseconds later.

    A datagram that is lost before costs a resolver 5 s. Raises PodNetworkError after FORWARDING_TIMEOUT_S.
    """
    state_file = _INTERFACES / interface / "brport" / "state"
    deadline_s = time.monotonic() + FORWARDING_TIMEOUT_S
    while state_file.exists() and state_file.read_text(encoding="ascii").strip() != _FORWARDING:
        if time.monotonic() > deadline_s:
            raise PodNetworkError(f"the bridge does not forward for {interface}")
        time.sleep(FORWARDING_POLL_S)


def _set_option(name: str, value: int) -> None:
    """Set an option of IPv4 in the network namespace of this thread. Raises OSError."""
    (_IPV4_OPTIONS / name).write_text(f"{value}\n", encoding="ascii")


def _run_in_own_thread(work: Callable[[], Result]) -> Result:
    """Run `work`, which may change the namespace of its thread, in a thread that ends after it."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


def _load_libc() -> ctypes.CDLL:
    """The C library, whose calls set the error number that `_check_result` reads."""
    return ctypes.CDLL(None, use_errno=True)


def _check_result(result: int) -> None:
    """Raise OSError if a call of libc has returned an error."""
    if result != 0:
        error_number = ctypes.get_errno()
        raise OSError(error_number, os.strerror(error_number))
