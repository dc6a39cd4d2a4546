"""The words for connections that fail."""

import errno
import socket
import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from podscaler.kube import causes

KEY: Any = SimpleNamespace(ssl=True, host="h", port=443, is_ssl=True)


def _certificate_error(code: int) -> aiohttp.ClientConnectorCertificateError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, "something odd"
    return aiohttp.ClientConnectorCertificateError(KEY, error)


CASES: dict[str, tuple[BaseException, str, bool]] = {
    "refused": (
        aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "Connect call failed", ("10.0.0.1", 443))),
        "dial tcp h:443: connect: connection refused",
        False,
    ),
    "unreachable": (
        aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "x")),
        "dial tcp h:443: connect: no route to host",
        False,
    ),
    "unknown host": (
        aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(-2, "Name or service not known")),
        "dial tcp: lookup h: no such host",
        False,
    ),
    "slow to connect": (aiohttp.ConnectionTimeoutError(), "dial tcp h:443: i/o timeout", False),
    "slow to answer": (TimeoutError(), causes.TIMED_OUT, False),
    "reset": (OSError(errno.ECONNRESET, "x"), "read tcp h:443: connection reset by peer", True),
    "closed": (aiohttp.ServerDisconnectedError(), "EOF", True),
    "cut short": (aiohttp.ClientPayloadError("x"), "EOF", True),
    "expired certificate": (
        _certificate_error(10),
        "tls: failed to verify certificate: x509: certificate has expired or is not yet valid",
        False,
    ),
    "unknown authority": (
        _certificate_error(19),
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        False,
    ),
    "another name": (_certificate_error(62), "tls: failed to verify certificate: x509: something odd", False),
    "anything else": (aiohttp.ClientError("what"), "what", False),
}


@pytest.mark.parametrize("name", CASES)
def test_text(name: str) -> None:
    """Go's words for each way in which there is no answer, and whether a connection that stood was lost."""
    error, text, is_broken = CASES[name]
    assert (causes.text(error, "h:443"), causes.is_broken_connection(error)) == (text, is_broken)
