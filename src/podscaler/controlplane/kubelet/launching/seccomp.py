"""The kernel's side of trapped system calls: the filter for `bind` and `connect`, and the descriptor that reports them.

`launch_plan` hands the filter to the launcher, which installs it just before it becomes a container's program;
`port_translation` reads the reports. Every process that the program starts shares the filter.

This is no security boundary: the memory that a call points to can change between the report and the call, and io_uring
and 32-bit system calls pass untouched.

Source: seccomp(2), seccomp_unotify(2), proc_pid_mem(5); include/uapi/linux/seccomp.h.
"""

import fcntl
import os
import platform
import select
import struct
import sys
from dataclasses import dataclass
from typing import Any, Final

MEMORY_BYTES_MAX: Final = 128
"""The size of struct sockaddr_storage: no address of a socket is longer."""


@dataclass(frozen=True, slots=True)
class _Machine:
    """The numbers of an architecture: its name for audits, and those of system calls."""

    audit: int
    bind: int
    connect: int
    seccomp: int


_MACHINES: Final = {
    "x86_64": _Machine(0xC000_003E, bind=49, connect=42, seccomp=317),
    "aarch64": _Machine(0xC000_00B7, bind=200, connect=203, seccomp=277),
}
_MACHINE: Final = _MACHINES.get(platform.machine()) if sys.platform == "linux" and sys.maxsize > 2**32 else None

_LOAD_WORD: Final = 0x20
"""BPF_LD | BPF_W | BPF_ABS: load a word of struct seccomp_data, whose first two are the call and the architecture."""
_JUMP_EQUAL: Final = 0x15
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF_0000
_USER_NOTIFICATION: Final = 0x7FC0_0000

_RECEIVE: Final = 0xC050_2100
_RESPOND: Final = 0xC018_2101
_ID_VALID: Final = 0x4008_2102
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags; call, architecture, instruction pointer, six arguments."""
_RESPONSE: Final = struct.Struct("=QqiI")
"""struct seccomp_notif_resp: id, value, error, flags."""
_CONTINUE: Final = 1


@dataclass(frozen=True, slots=True)
class TrappedCall:
    """A process that waits in `bind` or `connect`.

    Attributes:
        id: names the call on its listener.
        pid: the thread that makes it.
        is_bind: whether it is `bind`, otherwise it is `connect`.
        address, length: where the socket address is in the process' memory, and its size in bytes.
    """

    id: int
    pid: int
    is_bind: bool
    address: int
    length: int


def plan() -> dict[str, Any] | None:
    """What the launcher needs to install the filter, as JSON data; None where the architecture is not known.

    `filter` is the program (struct sock_filter each) in hexadecimal, `call` the number of seccomp(2).
    """
    if _MACHINE is None:
        return None
    program = (
        (_LOAD_WORD, 0, 0, 4),
        (_JUMP_EQUAL, 0, 3, _MACHINE.audit),
        (_LOAD_WORD, 0, 0, 0),
        (_JUMP_EQUAL, 2, 0, _MACHINE.bind),
        (_JUMP_EQUAL, 1, 0, _MACHINE.connect),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _USER_NOTIFICATION),
    )
    return {"filter": b"".join(struct.pack("=HBBI", *each) for each in program).hex(), "call": _MACHINE.seccomp}


class Listener:
    """The calls of all processes that share one filter.

    Args:
        descriptor: the listener that seccomp(2) returned; closed by `close`. Calls that are made after that fail with
            ENOSYS.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._poller = select.poll()
        self._poller.register(descriptor, select.POLLIN)

    def state(self, timeout_ms: int = 0) -> int:
        """The bits of poll(2): POLLIN where a call waits, POLLHUP once no process has the filter any more."""
        return next((bits for _, bits in self._poller.poll(timeout_ms)), 0)

    def receive(self) -> TrappedCall | None:
        """The next call; None where its process has died, or was interrupted. Blocks unless `state` has POLLIN."""
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, buffer)
        except OSError:  # ENOENT, EINTR: the call is over, or is reported again
            return None
        id_, pid, _, number, _, _, _, address, length, *_ = _NOTIFICATION.unpack(buffer)
        return TrappedCall(id_, pid, _MACHINE is not None and number == _MACHINE.bind, address, length & 0xFFFF_FFFF)

    def open_memory(self, call: TrappedCall) -> int:
        """A descriptor of the memory of the process that makes `call`. Raises OSError where that is not allowed."""
        descriptor = os.open(f"/proc/{call.pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:  # a pid may have been given to another process before the file was opened, not after
            fcntl.ioctl(self.descriptor, _ID_VALID, struct.pack("=Q", call.id))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def resume(self, call: TrappedCall) -> None:
        """Let the kernel carry out the call with what is in the process' memory now."""
        try:
            fcntl.ioctl(self.descriptor, _RESPOND, _RESPONSE.pack(call.id, 0, 0, _CONTINUE))
        except OSError:  # ENOENT: the process has died, or was interrupted and makes the call again
            return

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)
