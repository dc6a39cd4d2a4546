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

`node_agent` makes one `PortTranslator`; `container_setup` takes a `PortTrap` from it for each start of a container.
docs/decisions/low-ports.md has the reasons.
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
"""Returns the address that replaces one; the second argument is True for `bind`, False for `connect`."""

_ANY: Final = "0.0.0.0"  # noqa: S104  compared with addresses of programs, nothing is bound to it here
_MAPPED: Final = bytes(10) + b"\xff\xff"
"""The first bytes of an IPv4 address in an IPv6 one."""

_log = logging.getLogger(__name__)


def read_address(memory: bytes) -> Address | None:
    """The IPv4 address and port in a struct sockaddr, `::` as 0.0.0.0; None for other addresses."""
    if len(memory) < 8:
        return None
    (family,) = struct.unpack_from("=H", memory)
    (port,) = struct.unpack_from("!H", memory, 2)
    if family == socket.AF_INET:
        return socket.inet_ntoa(memory[4:8]), port
    if family != socket.AF_INET6 or len(memory) < 24:
        return None
    if memory[8:24] == bytes(16):
        return _ANY, port
    return (socket.inet_ntoa(memory[20:24]), port) if memory[8:20] == _MAPPED else None


def with_address(memory: bytes, address: Address) -> bytes:
    """The struct sockaddr (AF_INET or AF_INET6) with its address replaced by this IPv4 address and port."""
    packed = socket.inet_aton(address[0])
    start = memory[:2] + struct.pack("!H", address[1])
    if struct.unpack_from("=H", memory) == (socket.AF_INET,):
        return start + packed + memory[8:]
    return start + memory[4:8] + _MAPPED + packed + memory[24:]


def translate_call(listener: Listener, call: TrappedCall, translate: Translate) -> None:
    """Translate the address of one system call, and resume it."""
    try:
        memory = listener.open_memory(call)
    except OSError as error:  # rule 4, or the process has exited
        _log.debug("the memory of process %d cannot be read: %s", call.pid, error)
        listener.resume(call)
        return
    try:
        former = os.pread(memory, min(call.length, MEMORY_BYTES_MAX), call.address)
        address = read_address(former)
        wanted = translate(address, call.is_bind) if address is not None else None
        if wanted is not None and wanted != address:
            os.pwrite(memory, with_address(former, wanted), call.address)
    except (OSError, OverflowError):  # an invalid address: the kernel returns EFAULT itself
        pass
    finally:
        os.close(memory)
        listener.resume(call)


@dataclass(slots=True)
class PortTrap:
    """The port translation of one start of a container.

    Attributes:
        adopt: takes over the descriptor of the seccomp filter's listener. Raises OSError.
        bound: the translated ports that the container has bound so far: its own port -> the real port.
    """

    adopt: Callable[[int], None]
    bound: Mapping[int, int]


class PortTranslator:
    """Translates the low ports of all pods of the node; one instance keeps the ports of the Services.

    Args:
        block: the address block of this `up`.
        first_port: the lowest port that pods may bind.
    """

    def __init__(self, block: AddressBlock, *, first_port: int) -> None:
        self._block = block
        self._first_port = first_port
        self._services: dict[str, Mapping[int, int]] = {}
        self._listeners: set[Listener] = set()

    def update_service(self, service: Mapping[str, Any], *, is_gone: bool) -> None:
        """Update the ports of a Service that was created, changed, or deleted (`is_gone`)."""
        address = service["spec"].get("clusterIP") or ""
        if is_gone:
            self._services.pop(address, None)
        elif self._block.contains(address):
            self._services[address] = port_map.of(service)

    def trap(self, pod_ip: str, on_bound: Callable[[Mapping[int, int]], None]) -> PortTrap:
        """A trap for processes of the pod at `pod_ip`; `on_bound` is called with `bound` after each new port."""
        bound: dict[int, int] = {}

        def translate(address: Address, is_bind: bool) -> Address:
            if not is_bind:
                return self.connected(address)
            wanted = self.bound(address, pod_ip)
            if wanted != address and address[1] not in bound:
                bound[address[1]] = wanted[1]
                on_bound(bound)
            return wanted

        return PortTrap(lambda descriptor: self._adopt(Listener(descriptor), translate), bound)

    def connected(self, address: Address) -> Address:
        """The address that replaces `address` in `connect` (rules 1 and 3)."""
        host, port = address
        if not (0 < port < self._first_port and self._block.contains(host)):
            return address
        moved = self._services.get(host)
        return host, (PORT_OFFSET + port if moved is None else moved.get(port, port))

    def bound(self, address: Address, pod_ip: str) -> Address:
        """The address that replaces `address` in `bind` of the pod at `pod_ip` (rules 1 and 2)."""
        host, port = address
        if 0 < port < self._first_port and host in (pod_ip, _ANY):
            return pod_ip, PORT_OFFSET + port
        return address

    def close(self) -> None:
        """Close all listeners; called when no container runs any more."""
        for listener in list(self._listeners):
            self._close_listener(listener)

    def _adopt(self, listener: Listener, translate: Translate) -> None:
        """Translate the calls of a listener until no process has its filter any more."""
        try:
            asyncio.get_running_loop().add_reader(listener.descriptor, self._readable, listener, translate)
        except OSError:
            listener.close()
            raise
        self._listeners.add(listener)

    def _readable(self, listener: Listener, translate: Translate) -> None:
        """Answer the calls that wait at a listener, a limited number at once."""
        for _ in range(CALLS_AT_ONCE):
            state = listener.state()
            if not state & select.POLLIN:
                if state:
                    self._close_listener(listener)
                return
            call = listener.receive()
            if call is not None:
                translate_call(listener, call, translate)

    def _close_listener(self, listener: Listener) -> None:
        asyncio.get_running_loop().remove_reader(listener.descriptor)
        self._listeners.discard(listener)
        listener.close()
