"""The program `nc` of the images `busybox` and `agnhost`, for machines without one: connects to a TCP or UDP port.

`kubelet.launching.images` writes a script that runs it. It imports the standard library only. Standard input is sent,
and received bytes are printed, until both ends are closed or nothing arrives for `-w` seconds. `-z` connects only, `-u`
is UDP, `-v` reports the connection on standard error; `-t` has no effect. The exit status is 1 where the connection
fails. A new option: a letter of `getopt` in `main`.

Source: the usage texts of busybox' and OpenBSD's nc.
"""

import getopt
import os
import selectors
import socket
import sys

USAGE = "usage: nc [-tuvz] [-w SECONDS] HOST PORT"
READ_BYTES = 65_536
_STDIN = 0


def exchange(connection: socket.socket, timeout_s: float | None) -> None:
    """Send standard input and print the received bytes, until the peer closes or is silent for `timeout_s` seconds.

    Raises OSError.
    """
    with selectors.SelectSelector() as selector:  # epoll refuses files as standard input
        selector.register(connection, selectors.EVENT_READ)
        selector.register(_STDIN, selectors.EVENT_READ)
        while ready := selector.select(timeout_s):
            for key, _ in ready:
                if key.fileobj is connection:
                    received = connection.recv(READ_BYTES)
                    if not received and connection.type == socket.SOCK_STREAM:
                        return
                    sys.stdout.buffer.write(received)
                    sys.stdout.buffer.flush()
                elif input_bytes := os.read(_STDIN, READ_BYTES):
                    connection.sendall(input_bytes)
                else:
                    selector.unregister(_STDIN)
                    if connection.type == socket.SOCK_STREAM:
                        connection.shutdown(socket.SHUT_WR)


def connect(host: str, port: int, socket_type: int, timeout_s: float | None) -> socket.socket:
    """A connected socket of the type SOCK_STREAM or SOCK_DGRAM. Raises OSError.

    Args:
        timeout_s: of the connection, None for that of the system.
    """
    first_result, *_ = socket.getaddrinfo(host, port, socket.AF_INET, socket_type)
    *_, address = first_result
    connection = socket.socket(socket.AF_INET, socket_type)
    try:
        connection.settimeout(timeout_s)
        connection.connect(address)
        connection.settimeout(None)
    except OSError:
        connection.close()
        raise
    return connection


def main() -> int:
    """Connect as the command line says; returns the exit status."""
    try:
        flags, arguments = getopt.gnu_getopt(sys.argv[1:], "tuvzw:")
        options = dict(flags)
        host, port = arguments[0], int(arguments[1])
        timeout_s = float(options["-w"]) if "-w" in options else None
    except (getopt.GetoptError, ValueError, IndexError):
        print(USAGE, file=sys.stderr)
        return 1
    socket_type = socket.SOCK_DGRAM if "-u" in options else socket.SOCK_STREAM
    try:
        with connect(host, port, socket_type, timeout_s) as connection:
            if "-v" in options:
                print(f"Connection to {host} {port} port succeeded!", file=sys.stderr)
            if "-z" not in options:
                exchange(connection, timeout_s)
    except OSError as error:
        print(f"nc: connect to {host} port {port}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
