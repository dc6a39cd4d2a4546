"""Addresses for programs that tests start and that must be told where to listen.

A port that was free a moment ago may be somebody else's by the time it is used: of another test, of another run of the
tests on this machine, or of any connection. So the address is one that nobody else uses, in a block of loopback
addresses that `podscaler up` never claims (`controlplane/network/addresses.py`); where the machine has only 127.0.0.1,
it is that one.
"""

import os
import socket


def own_address() -> str:
    """The loopback address of this process."""
    number = os.getpid()
    address = f"127.1.{number >> 8 & 0xFF}.{number & 0xFF}"
    with socket.socket() as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return "127.0.0.1"
    return address


def own_place() -> tuple[str, int]:
    """An address and a port on it that is free."""
    with socket.create_server((own_address(), 0)) as probe:
        host, port = probe.getsockname()
    return host, port
