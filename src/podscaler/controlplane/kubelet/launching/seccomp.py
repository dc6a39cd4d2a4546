"""A seccomp filter that suspends `bind` and `connect`, and the listener that reports the suspended system calls.

`container_config` passes the filter of `filter_plan` to the launcher, which installs it just before it executes a
container's program; all processes that the program starts inherit the filter. `port_translation` reads the reports from
a `Listener`. Another system call: an instruction in `filter_plan`, its numbers in _MACHINES, and a case in `receive`.
Another architecture: an entry of _MACHINES.

This is not a security boundary: the memory that a call points to can change between the report and the call, and
io_uring and 32-bit system calls are not filtered.

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
    """The constants of an architecture: its AUDIT_ARCH, and its numbers of the system calls of these names."""

    audit: int
    bind: int
    connect: int
    seccomp: int


_MACHINES: Final = {
    "x86_64": _Machine(0xC000_003E, bind=49, connect=42, seccomp=317),
    "aarch64": _Machine(0xC000_00B7, bind=200, connect=203, seccomp=277),
}
_MACHINE: Final = _MACHINES.get(platform.machine()) if sys.platform == "linux" and sys.maxsize > 2**32 else None

_INSTRUCTION: Final = struct.Struct("=HBBI")
"""struct sock_filter: code, jump if true, jump if false, operand."""
_LOAD_WORD: Final = 0x20
"""BPF_LD | BPF_W | BPF_ABS: load the word at an offset of struct seccomp_data."""
# the offsets of two members of struct seccomp_data
_CALL_OFFSET: Final = 0
_ARCHITECTURE_OFFSET: Final = 4
_JUMP_EQUAL: Final = 0x15
"""BPF_JMP | BPF_JEQ | BPF_K."""
_RETURN: Final = 0x06
"""BPF_RET | BPF_K: end with the operand as the action."""
# the actions SECCOMP_RET_ALLOW and SECCOMP_RET_USER_NOTIF
_ALLOW: Final = 0x7FFF_0000
_USER_NOTIFICATION: Final = 0x7FC0_0000

# the requests of ioctl(2) on the listener: SECCOMP_IOCTL_NOTIF_RECV, _SEND and _ID_VALID
_RECEIVE: Final = 0xC050_2100
_RESPOND: Final = 0xC018_2101
_ID_VALID: Final = 0x4008_2102
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags; call, architecture, instruction pointer, six arguments."""
_RESPONSE: Final = struct.Struct("=QqiI")
"""struct seccomp_notif_resp: id, value, error, flags."""
_CONTINUE: Final = 1
"""SECCOMP_USER_NOTIF_FLAG_CONTINUE: the kernel carries out the call."""


@dataclass(frozen=True, slots=True)
class TrappedCall:
    """A suspended system call.

    Attributes:
        id: the id of the call on its listener.
        pid: the thread that makes the call.
        is_bind: True for `bind`, False for `connect`.
        address, length: the location of the struct sockaddr in the process' memory, and its size in bytes.
    """

    id: int
    pid: int
    is_bind: bool
    address: int
    length: int


def filter_plan() -> dict[str, Any] | None:
    """The filter for the launcher's plan, as JSON data; None on an unsupported architecture.

    `filter` is the BPF program (an array of struct sock_filter) in hexadecimal, `call` the number of seccomp(2).
    """
    if _MACHINE is None:
        return None
    # code; instructions to skip if the loaded word is equal, and if it is not; operand
    instructions = (
        (_LOAD_WORD, 0, 0, _ARCHITECTURE_OFFSET),
        (_JUMP_EQUAL, 0, 3, _MACHINE.audit),
        (_LOAD_WORD, 0, 0, _CALL_OFFSET),
        (_JUMP_EQUAL, 2, 0, _MACHINE.bind),
        (_JUMP_EQUAL, 1, 0, _MACHINE.connect),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _USER_NOTIFICATION),
    )
    program = b"".join(_INSTRUCTION.pack(*instruction) for instruction in instructions)
    return {"filter": program.hex(), "call": _MACHINE.seccomp}


class Listener:
    """The listener of one filter, which reports the calls of all processes that have the filter.

    Args:
        descriptor: the file descriptor that seccomp(2) returned; closed by `close`. Later calls fail with ENOSYS.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._poller = select.poll()
        self._poller.register(descriptor, select.POLLIN)

    def poll(self, timeout_ms: int = 0) -> int:
        """The result of poll(2): POLLIN where a call is suspended, POLLHUP once no process has the filter, else 0."""
        return next((bits for _, bits in self._poller.poll(timeout_ms)), 0)

    def receive(self) -> TrappedCall | None:
        """The next call; None if its process was killed or interrupted. Blocks unless `poll` has returned POLLIN."""
        buffer = bytearray(_NOTIFICATION.size)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, buffer)
        except OSError:  # ENOENT, EINTR: the call has ended, or is reported again
            return None
        # the arguments of bind and connect are the socket, the address and its length, which is a 32-bit number
        id_, pid, _, call_number, _, _, _, address, length, *_ = _NOTIFICATION.unpack(buffer)
        is_bind = _MACHINE is not None and call_number == _MACHINE.bind
        return TrappedCall(id_, pid, is_bind, address, length & 0xFFFF_FFFF)

    def open_memory(self, call: TrappedCall) -> int:
        """Open the memory of the process that makes `call`; returns a descriptor. Raises OSError (denied, gone)."""
        descriptor = os.open(f"/proc/{call.pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        try:  # the pid may have been reused before the file was opened, but not after
            fcntl.ioctl(self.descriptor, _ID_VALID, struct.pack("=Q", call.id))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def resume(self, call: TrappedCall) -> None:
        """Let the kernel carry out the call with the present content of the process' memory."""
        try:
            fcntl.ioctl(self.descriptor, _RESPOND, _RESPONSE.pack(call.id, 0, 0, _CONTINUE))
        except OSError:  # ENOENT: the process was killed, or was interrupted and repeats the call
            return

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)
