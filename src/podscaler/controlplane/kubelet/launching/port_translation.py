"""Translates ports below the machine's limit in the system calls of pods, where `up` may not bind such ports.

The proxy then serves a Service's port 80 at 20080, and a program in a pod that binds port 80 gets 20080 of the pod's
address. The kernel suspends `bind` and `connect` of a pod's processes (`seccomp`) until the address in their memory has
been read, and replaced if need be, on the event loop. Rules:

1. Only IPv4 addresses (also as ::ffff:a.b.c.d in IPv6), and only ports from 1 up to the limit, are translated.
2. `bind` to the pod's own address, or to all addresses, goes to the pod's own address at port + 20000.
3. `connect` to a Service goes to the port at which the proxy listens; to another address of the block, at port + 20000.
4. All other calls are carried out unchanged, also where the process' memory cannot be read.

The new address is written into the process' memory before the call goes on, so that `connect` blocks and is interrupted
in the process itself. A call that is interrupted and repeated has the new address, which rule 1 leaves unchanged.

`kubelet.node_agent` makes one `PortTranslator`; `kubelet.pods.container_setup` takes a `PortTrap` from it for each
start of a container; `capabilities` tries `translate_call`. docs/decisions/low-ports.md has the reasons.
"""

import asyncio
import logging
import os
import select
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from podscaler.api import port_map
from podscaler.controlplane.kubelet.launching.container_ports import PORT_OFFSET
from podscaler.controlplane.kubelet.launching.seccomp import MEMORY_BYTES_MAX, Listener, TrappedCall
from podscaler.controlplane.network.addresses import AddressBlock

CALLS_AT_ONCE: Final = 32
"""The most calls of one container that are translated before other tasks of the event loop run."""

Address = tuple[str, int]
Translate = Callable[[Address, bool], Address]
"""Returns the address that replaces one, which may be equal; the second argument is True for `bind`."""

_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  compared with addresses of programs, nothing is bound to it here
_IPV4_MAPPED_PREFIX: Final = bytes(10) + b"\xff\xff"
"""The first bytes of an IPv4-mapped IPv6 address, ::ffff:a.b.c.d."""

# struct sockaddr_in: family (2 bytes), port (2), IPv4 address (4)
# struct sockaddr_in6: family (2 bytes), port (2), flow information (4), IPv6 address (16), scope (4)
_SOCKADDR_IN_BYTES: Final = 8
_IPV6_ADDRESS_END: Final = 24

_log = logging.getLogger(__name__)


def read_address(sockaddr: bytes) -> Address | None:
    """The IPv4 address and port in a struct sockaddr, `::` as 0.0.0.0; None for other addresses."""
    if len(sockaddr) < _SOCKADDR_IN_BYTES:
        return None
    (family,) = struct.unpack_from("=H", sockaddr)
    (port,) = struct.unpack_from("!H", sockaddr, 2)
    if family == socket.AF_INET:
        return socket.inet_ntoa(sockaddr[4:8]), port
    if family != socket.AF_INET6 or len(sockaddr) < _IPV6_ADDRESS_END:
        return None
    ipv6_address = sockaddr[8:_IPV6_ADDRESS_END]
    if ipv6_address == bytes(16):
        return _ANY_ADDRESS, port
    return (socket.inet_ntoa(ipv6_address[12:]), port) if ipv6_address.startswith(_IPV4_MAPPED_PREFIX) else None


def with_address(sockaddr: bytes, address: Address) -> bytes:
    """The struct sockaddr (AF_INET or AF_INET6) with its address replaced by this IPv4 address and port."""
    host, port = address
    ipv4_address = socket.inet_aton(host)
    family_and_port = sockaddr[:2] + struct.pack("!H", port)
    if struct.unpack_from("=H", sockaddr) == (socket.AF_INET,):
        return family_and_port + ipv4_address + sockaddr[_SOCKADDR_IN_BYTES:]
    flow_information = sockaddr[4:8]
    return family_and_port + flow_information + _IPV4_MAPPED_PREFIX + ipv4_address + sockaddr[_IPV6_ADDRESS_END:]


def translate_call(listener: Listener, call: TrappedCall, translate: Translate) -> None:
    """Translate the address of one system call in the memory of its process, and resume the call."""
    try:
        memory = listener.open_memory(call)
    except OSError as error:  # rule 4, or the process has exited
        _log.debug("the memory of process %d cannot be read: %s", call.pid, error)
        listener.resume(call)
        return
    try:
        sockaddr = os.pread(memory, min(call.length, MEMORY_BYTES_MAX), call.address)
        address = read_address(sockaddr)
        if address is not None:
            new_address = translate(address, call.is_bind)
            if new_address != address:
                os.pwrite(memory, with_address(sockaddr, new_address), call.address)
    except (OSError, OverflowError):  # an invalid address: the kernel returns EFAULT itself
        pass
    finally:
        os.close(memory)
        listener.resume(call)


@dataclass(slots=True)
class PortTrap:
    """The port translation of one start of a container.

    Attributes:
        adopt_listener: takes over the descriptor of the seccomp filter's listener, and closes it. Raises OSError.
        bound: the translated ports that the container has asked to bind so far: its own port -> the real port.
    """

    adopt_listener: Callable[[int], None]
    bound: Mapping[int, int]


class PortTranslator:
    """Translates the low ports of all pods of the node; knows the ports of the Services.

    Args:
        block: the address block of this `up`.
        unprivileged_port_start: the lowest port that pods may bind.
    """

    def __init__(self, block: AddressBlock, *, unprivileged_port_start: int) -> None:
        self._block = block
        self._unprivileged_port_start = unprivileged_port_start
        self._service_ports: dict[str, Mapping[int, int]] = {}  # clusterIP -> port -> the port of the proxy's listener
        self._service_addresses: dict[tuple[str, str], str] = {}  # namespace and name of a Service -> its clusterIP
        self._listeners: set[Listener] = set()

    def update_service(self, service: Mapping[str, Any], *, is_gone: bool) -> None:
        """Update the ports of a core/v1 Service that was created, changed, or deleted (`is_gone`)."""
        key = service["metadata"]["namespace"], service["metadata"]["name"]
        previous_address = self._service_addresses.pop(key, None)
        if previous_address is not None:  # a Service that becomes an ExternalName loses its address
            del self._service_ports[previous_address]
        address = service["spec"].get("clusterIP") or ""
        if not is_gone and self._block.contains(address):
            self._service_addresses[key] = address
            self._service_ports[address] = port_map.of(service)

    def trap(self, pod_ip: str, on_bound: Callable[[Mapping[int, int]], None]) -> PortTrap:
        """A trap for the processes of one container.

        Args:
            pod_ip: the address of the container's pod.
            on_bound: called with the trap's `bound` after each new port.
        """
        bound: dict[int, int] = {}

        def translate(address: Address, is_bind: bool) -> Address:
            """The address that replaces one in a system call; a port that is bound is added to `bound`."""
            if not is_bind:
                return self.connect_address(address)
            new_address = self.bind_address(address, pod_ip)
            _, port = address
            _, new_port = new_address
            if new_address != address and port not in bound:
                bound[port] = new_port
                on_bound(bound)
            return new_address

        return PortTrap(lambda descriptor: self._adopt_listener(Listener(descriptor), translate), bound)

    def connect_address(self, address: Address) -> Address:
        """The address that replaces `address` in `connect` (rules 1 and 3)."""
        host, port = address
        if not (0 < port < self._unprivileged_port_start and self._block.contains(host)):
            return address
        proxy_ports = self._service_ports.get(host)
        return host, (PORT_OFFSET + port if proxy_ports is None else proxy_ports.get(port, port))

    def bind_address(self, address: Address, pod_ip: str) -> Address:
        """The address that replaces `address` in `bind` of the pod at `pod_ip` (rules 1 and 2)."""
        host, port = address
        if 0 < port < self._unprivileged_port_start and host in (pod_ip, _ANY_ADDRESS):
            return pod_ip, PORT_OFFSET + port
        return address

    def close(self) -> None:
        """Close all listeners; called when no container runs any more."""
        for listener in list(self._listeners):
            self._close_listener(listener)

    def _adopt_listener(self, listener: Listener, translate: Translate) -> None:
        """Translate the calls of a listener until no process has its filter any more."""
        try:
            asyncio.get_running_loop().add_reader(listener.descriptor, self._translate_calls, listener, translate)
        except OSError:
            listener.close()
            raise
        self._listeners.add(listener)

    def _translate_calls(self, listener: Listener, translate: Translate) -> None:
        """Translate the calls that wait at a listener, at most CALLS_AT_ONCE of them.

        Called by the event loop while the listener's descriptor is readable.
        """
        for _ in range(CALLS_AT_ONCE):
            events = listener.poll()
            if not events & select.POLLIN:
                if events:  # POLLHUP: no process has the filter any more
                    self._close_listener(listener)
                return
            call = listener.receive()
            if call is not None:
                translate_call(listener, call, translate)

    def _close_listener(self, listener: Listener) -> None:
        asyncio.get_running_loop().remove_reader(listener.descriptor)
        self._listeners.discard(listener)
        listener.close()
