"""Translates ports below the machine's limit in the calls of pods, where `up` may not bind such ports.

A Service's port 80 is served at 20080 then, and a pod's program that binds port 80 gets 20080 of the pod's address.
With the filter of `seccomp`, `bind` and `connect` of a pod's processes wait until the address that they name has been
read from their memory here, on the event loop. Rules:

1. Only IPv4 addresses (also as ::ffff:a.b.c.d in IPv6), and only ports from 1 up to the limit.
2. `bind` to the pod's own address, or to all addresses, goes to the pod's own address at port + 20000.
3. `connect` to a Service goes to where the proxy listens; to another address of the block, at port + 20000.
4. Everything else is carried out unchanged, also where the process' memory cannot be read.

The new address is written into the process' memory before the call goes on, so that `connect` blocks and is interrupted
in the process itself. A call that is interrupted and made again names the new address, which rule 1 leaves alone.

`node_agent` makes one `PortTranslator`; `launch` asks it for a trap for each start of a container.
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
from podscaler.controlplane.kubelet.launching.container_ports import MAPPED_FROM
from podscaler.controlplane.kubelet.launching.seccomp import MEMORY_BYTES_MAX, Listener, TrappedCall
from podscaler.controlplane.network.addresses import AddressBlock

CALLS_AT_ONCE: Final = 32
"""Calls of one container that are answered before the event loop goes on with something else."""

Address = tuple[str, int]
Translate = Callable[[Address, bool], Address]
"""The address to use in place of one; the second argument says whether it is for `bind`."""

_ANY: Final = "0.0.0.0"  # noqa: S104  the address that programs name, nothing is bound to it here
_MAPPED: Final = bytes(10) + b"\xff\xff"
"""The first bytes of an IPv4 address in an IPv6 one."""

_log = logging.getLogger(__name__)


def read_address(memory: bytes) -> Address | None:
    """The IPv4 address and port in a struct sockaddr; `::` counts as 0.0.0.0; None for everything else."""
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
    """The struct sockaddr of either family with another IPv4 address and port."""
    packed = socket.inet_aton(address[0])
    start = memory[:2] + struct.pack("!H", address[1])
    if struct.unpack_from("=H", memory) == (socket.AF_INET,):
        return start + packed + memory[8:]
    return start + memory[4:8] + _MAPPED + packed + memory[24:]


def answer(listener: Listener, call: TrappedCall, translate: Translate) -> None:
    """Translate the address of one call, and let it go on."""
    try:
        memory = listener.open_memory(call)
    except OSError as error:  # rule 4; or it has died
        _log.debug("the memory of process %d cannot be read: %s", call.pid, error)
        listener.resume(call)
        return
    try:
        given = os.pread(memory, min(call.length, MEMORY_BYTES_MAX), call.address)
        address = read_address(given)
        wanted = translate(address, call.is_bind) if address is not None else None
        if wanted is not None and wanted != address:
            os.pwrite(memory, with_address(given, wanted), call.address)
    except (OSError, OverflowError):  # no such memory: the kernel says EFAULT itself
        pass
    finally:
        os.close(memory)
        listener.resume(call)


@dataclass(slots=True)
class PortTrap:
    """What one start of a container needs: `adopt` takes the listener, `bound` has the ports that it has bound so far.

    Attributes:
        bound: port that the program named -> real port.
    """

    adopt: Callable[[int], None]
    bound: Mapping[int, int]


class PortTranslator:
    """See the module.

    Args:
        block: the addresses of this `up`.
        first_port: the lowest port that pods may bind.
    """

    def __init__(self, block: AddressBlock, *, first_port: int) -> None:
        self._block = block
        self._first_port = first_port
        self._services: dict[str, Mapping[int, int]] = {}
        self._listeners: set[Listener] = set()

    def note_service(self, service: Mapping[str, Any], *, is_gone: bool) -> None:
        """A Service is there, has changed, or is gone."""
        address = service["spec"].get("clusterIP") or ""
        if is_gone:
            self._services.pop(address, None)
        elif self._block.contains(address):
            self._services[address] = port_map.of(service)

    def trap(self, pod_ip: str, on_bound: Callable[[Mapping[int, int]], None]) -> PortTrap:
        """The trap for processes of the pod at `pod_ip`; `on_bound` is called with `bound` when that has grown."""
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
        """Where a connection to `address` goes (rules 1 and 3)."""
        host, port = address
        if not (0 < port < self._first_port and self._block.contains(host)):
            return address
        moved = self._services.get(host)
        return host, (MAPPED_FROM + port if moved is None else moved.get(port, port))

    def bound(self, address: Address, pod_ip: str) -> Address:
        """Where a socket of the pod at `pod_ip` that is bound to `address` really is (rules 1 and 2)."""
        host, port = address
        if 0 < port < self._first_port and host in (pod_ip, _ANY):
            return pod_ip, MAPPED_FROM + port
        return address

    def close(self) -> None:
        """Answer no more calls; when no container runs any more."""
        for listener in list(self._listeners):
            self._dismiss(listener)

    def _adopt(self, listener: Listener, translate: Translate) -> None:
        """Answer the calls of a listener, which closes by itself when no process has its filter any more."""
        try:
            asyncio.get_running_loop().add_reader(listener.descriptor, self._answer, listener, translate)
        except OSError:
            listener.close()
            raise
        self._listeners.add(listener)

    def _answer(self, listener: Listener, translate: Translate) -> None:
        for _ in range(CALLS_AT_ONCE):
            state = listener.state()
            if not state & select.POLLIN:
                if state:
                    self._dismiss(listener)
                return
            call = listener.receive()
            if call is not None:
                answer(listener, call, translate)

    def _dismiss(self, listener: Listener) -> None:
        asyncio.get_running_loop().remove_reader(listener.descriptor)
        self._listeners.discard(listener)
        listener.close()
