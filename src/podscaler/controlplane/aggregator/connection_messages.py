"""Words network and TLS errors as Go's network stack does, as users of Kubernetes know these messages.

The proxies of `apiserver.handlers`, `webhook_client` and `availability` call it: a refused connection becomes
"dial tcp 127.5.1.2:443: connect: connection refused". A new kind of error: a case in `go_message`.

Source: messages of kube-apiserver v1.37. Differs: the names that a certificate is valid for are not listed.
"""

import asyncio
import errno
import ssl

import aiohttp

_IP_BY_NAME = {"localhost": "127.0.0.1"}
"""Names that Go resolves before it reports an error."""
_TLS_PREFIX = "tls: failed to verify certificate: x509: "

# results of OpenSSL's verification: the numbers of its constants X509_V_ERR_*
_EXPIRED_CODES = frozenset({9, 10})
_UNKNOWN_AUTHORITY_CODES = frozenset({2, 18, 19, 20, 21})
_HOSTNAME_MISMATCH_CODE = 62

_MESSAGES_BY_ERRNO = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to host",
    errno.ENETUNREACH: "network is unreachable",
    errno.ECONNRESET: "connection reset by peer",
    errno.ETIMEDOUT: "connection timed out",
}


def go_message(error: BaseException, host: str, port: int, server_name: str) -> str:
    """Go's message for an error of a request to `host`, whose certificate must be for `server_name`.

    The order matters: the classes of aiohttp are derived from each other and from OSError.
    """
    if isinstance(error, asyncio.TimeoutError):
        return "context deadline exceeded"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate_message(error.certificate_error, server_name)
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "tls: first record does not look like a TLS handshake"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        address = f"{bracketed(_IP_BY_NAME.get(host, host))}:{port}"
        return f"dial tcp {address}: connect: {_system_message(error.os_error)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, OSError):
        return _system_message(error)
    return str(error)


def bracketed(host: str) -> str:
    """A host as it stands before a port: an address of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def _system_message(error: OSError) -> str:
    return _MESSAGES_BY_ERRNO.get(error.errno or 0, error.strerror or str(error))


def _certificate_message(error: Exception, server_name: str) -> str:
    """Go's message for a certificate that OpenSSL did not accept."""
    code = error.verify_code if isinstance(error, ssl.SSLCertVerificationError) else 0
    if code == _HOSTNAME_MISMATCH_CODE:
        return f"{_TLS_PREFIX}certificate is not valid for {server_name}"
    if code in _UNKNOWN_AUTHORITY_CODES:
        return f"{_TLS_PREFIX}certificate signed by unknown authority"
    if code in _EXPIRED_CODES:
        return f"{_TLS_PREFIX}certificate has expired or is not yet valid"
    return f"{_TLS_PREFIX}{error}"
