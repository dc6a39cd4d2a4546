"""Texts of network and TLS errors as Go's network stack words them, which users of Kubernetes know.

Called by the proxy and by the availability checks.

Source: messages of kube-apiserver v1.37. Differs: the names that a certificate is valid for are not listed.
"""

import asyncio
import errno
import ssl

import aiohttp

_LOOPBACK = {"localhost": "127.0.0.1"}
_TLS = "tls: failed to verify certificate: x509: "
_EXPIRED = frozenset({9, 10})
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_OTHER_NAME = 62
"""Numbers of OpenSSL's X509_V_ERR_*."""
_CALLS = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ECONNRESET: "connection reset by peer",
    errno.ETIMEDOUT: "connection timed out",
}


def of(error: BaseException, host: str, port: int, server_name: str) -> str:
    """The text of an error of a request to `host`, whose certificate should be for `server_name`."""
    if isinstance(error, asyncio.TimeoutError):
        return "context deadline exceeded"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate(error.certificate_error, server_name)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "tls: first record does not look like a TLS handshake"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        why = _CALLS.get(error.os_error.errno or 0, error.os_error.strerror or str(error.os_error))
        return f"dial tcp {_LOOPBACK.get(host, host)}:{port}: connect: {why}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, OSError):
        return _CALLS.get(error.errno or 0, error.strerror or str(error))
    return str(error)


def _certificate(error: Exception, server_name: str) -> str:
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0
    if code == _OTHER_NAME:
        return f"{_TLS}certificate is not valid for {server_name}"
    if code in _UNKNOWN_AUTHORITY:
        return f"{_TLS}certificate signed by unknown authority"
    if code in _EXPIRED:
        return f"{_TLS}certificate has expired or is not yet valid"
    return f"{_TLS}{error}"
