"""Why a request got no answer, in the words that Go's HTTP client has for it.

`kube.aiohttp_transport` calls it; the words reach users in conditions and events, where operators search for them.

Source: decision.md 7.6 rule 4; the texts of Go's packages net, crypto/tls and net/http.
"""

import asyncio
import errno
import socket
import ssl

import aiohttp

ERRNO_TEXTS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset by peer",
    errno.EPIPE: "broken pipe",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ETIMEDOUT: "connection timed out",
    errno.EADDRNOTAVAIL: "cannot assign requested address",
    errno.EMFILE: "too many open files",
}
CERTIFICATE_TEXTS = {
    10: "certificate has expired or is not yet valid",
    9: "certificate has expired or is not yet valid",
    18: "certificate signed by unknown authority",
    19: "certificate signed by unknown authority",
    20: "certificate signed by unknown authority",
    21: "certificate signed by unknown authority",
}
"""OpenSSL's verification codes."""
TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


def text(error: BaseException, address: str) -> str:
    """The cause in Go's words; `address` is `host:port`."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {address.rsplit(':', 1)[0].strip('[]')}: no such host"
        case aiohttp.ClientConnectorCertificateError():
            return _certificate_text(error.certificate_error)
        case aiohttp.ClientConnectorSSLError():
            return f"tls: {error.strerror or error.os_error}"
        case aiohttp.ConnectionTimeoutError():
            return f"dial tcp {address}: i/o timeout"
        case asyncio.TimeoutError():
            return TIMED_OUT
        case aiohttp.ClientConnectorError():
            return f"dial tcp {_peer(error, address)}: connect: {_errno_text(error.os_error)}"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "EOF"
        case OSError():
            return f"read tcp {address}: {_errno_text(error)}"
        case _:
            return str(error) or type(error).__name__


def is_broken_connection(error: BaseException) -> bool:
    """Whether a connection that stood was lost: the same request may succeed on a new one."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return False
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
        return True
    return isinstance(error, OSError) and error.errno in (errno.ECONNRESET, errno.EPIPE)


def _peer(error: aiohttp.ClientConnectorError, address: str) -> str:
    arguments = error.os_error.args
    peer = arguments[-1] if arguments else None
    if isinstance(peer, tuple) and len(peer) >= 2:
        return f"{peer[0]}:{peer[1]}"
    return address


def _errno_text(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "no such host"
    number = error.errno
    if number is None and (several := getattr(error, "exceptions", ())):
        number = getattr(several[0], "errno", None)
    return ERRNO_TEXTS.get(number or 0) or (error.strerror or str(error)).lower()


def _certificate_text(error: Exception) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: {error}"
    known = CERTIFICATE_TEXTS.get(error.verify_code)
    return f"tls: failed to verify certificate: x509: {known or error.verify_message}"
