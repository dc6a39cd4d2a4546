"""The words for connections that fail."""

import errno
import socket
import ssl

import pytest

from podscaler.kube.transport import network_errors


def _certificate_error(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, "something odd"
    return error


DIALS: dict[str, tuple[BaseException, str]] = {
    "refused": (
        OSError(errno.ECONNREFUSED, "Connect call failed"),
        "dial tcp h:443: connect: connection refused",
    ),
    "unreachable": (OSError(errno.EHOSTUNREACH, "x"), "dial tcp h:443: connect: no route to host"),
    "something else": (OSError(errno.EACCES, "Permission denied"), "dial tcp h:443: connect: permission denied"),
    "unknown host": (socket.gaierror(-2, "Name or service not known"), "dial tcp: lookup h: no such host"),
    "slow to connect": (TimeoutError(), "dial tcp h:443: i/o timeout"),
    "no answer of the network": (OSError(errno.ETIMEDOUT, "x"), "dial tcp h:443: connect: connection timed out"),
    "expired certificate": (
        _certificate_error(10),
        "tls: failed to verify certificate: x509: certificate has expired or is not yet valid",
    ),
    "unknown authority": (
        _certificate_error(19),
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    ),
    "another name": (_certificate_error(62), "tls: failed to verify certificate: x509: something odd"),
    "no TLS": (ssl.SSLError(1, "wrong version number"), "tls: wrong version number"),
    "hung up in the handshake": (ConnectionAbortedError(), "tls: the handshake was not finished: EOF"),
}


@pytest.mark.parametrize("name", DIALS)
def test_of_dial(name: str) -> None:
    """Go's words for each way in which a connection cannot be made; none of them is a broken connection."""
    error, text = DIALS[name]
    found = network_errors.of_dial(error, "h:443")
    assert (found.cause, found.broken) == (text, False)


READS: dict[str, tuple[BaseException | None, bool, str, bool]] = {
    "closed before an answer": (None, True, "EOF", True),
    "closed within an answer": (None, False, "unexpected EOF", True),
    "reset": (OSError(errno.ECONNRESET, "x"), True, "read tcp h:443: connection reset by peer", True),
    "timed out": (OSError(errno.ETIMEDOUT, "x"), True, "read tcp h:443: connection timed out", False),
    "broken TLS": (ssl.SSLError(1, "bad record"), False, "tls: bad record", True),
    "anything else": (RuntimeError("what"), True, "what", True),
}


@pytest.mark.parametrize("name", READS)
def test_of_read(name: str) -> None:
    """Go's words for each way in which a connection ends, and whether the same request may succeed on another."""
    error, unanswered, text, is_broken = READS[name]
    found = network_errors.of_read(error, "h:443", unanswered=unanswered)
    assert (found.cause, found.broken, found.unanswered) == (text, is_broken, unanswered)
