"""The program `nc` of the images `busybox` and `agnhost`, for machines without one: connects to a TCP or UDP port.

It runs as a process of a pod and imports the standard library only. Standard input is sent, and what is received is
printed, until both ends are closed or nothing arrives for `-w` seconds. `-z` connects only, `-u` is UDP, `-v` tells of
the connection on standard error; `-t` has no effect. The exit status is 1 where the connection fails.

Source: the usage texts of busybox' and OpenBSD's nc.
"""

import getopt
import os
import selectors
import socket
import sys

USAGE = "usage: nc [-tuvz] [-w SECONDS] HOST PORT"
READ_BYTES = 65_536


def exchange(connection: socket.socket, timeout_s: float | None) -> None:
    """Send standard input and print what is received, until the peer closes or is silent for `timeout_s` seconds.

    Raises OSError.
    """
    with selectors.SelectSelector() as selector:  # epoll refuses files as standard input
        selector.register(connection, selectors.EVENT_READ)
        selector.register(0, selectors.EVENT_READ)
        while ready := selector.select(timeout_s):
            for key, _ in ready:
                if key.fileobj is connection:
                    data = connection.recv(READ_BYTES)
                    if not data and connection.type == socket.SOCK_STREAM:
                        return
                    sys.stdout.buffer.write(data)
                    sys.stdout.buffer.flush()
                elif sent := os.read(0, READ_BYTES):
                    connection.sendall(sent)
                else:
                    selector.unregister(0)
                    if connection.type == socket.SOCK_STREAM:
                        connection.shutdown(socket.SHUT_WR)


def connected(host: str, port: int, kind: int, timeout_s: float | None) -> socket.socket:
    """A connected socket of that kind. Raises OSError."""
    address = socket.getaddrinfo(host, port, socket.AF_INET, kind)[0][4]
    connection = socket.socket(socket.AF_INET, kind)
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
        pairs, names = getopt.gnu_getopt(sys.argv[1:], "tuvzw:")
        options = dict(pairs)
        host, port = names[0], int(names[1])
        timeout_s = float(options["-w"]) if "-w" in options else None
    except (getopt.GetoptError, ValueError, IndexError):
        print(USAGE, file=sys.stderr)
        return 1
    kind = socket.SOCK_DGRAM if "-u" in options else socket.SOCK_STREAM
    try:
        with connected(host, port, kind, timeout_s) as connection:
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
