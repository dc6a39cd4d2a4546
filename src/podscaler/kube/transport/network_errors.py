"""Converts errors of connections into the texts of Go's HTTP client: `dial tcp 10.0.0.1:443: i/o timeout`.

`transport.dialing` and `transport.connection` raise NoResponse with these texts; users read them in conditions and
events, and operators search for them.

Source: docs/spec/decision.md 7.6 (How an HTTP failure becomes text, rule 4); the texts of Go's packages net, crypto/tls
and net/http.
"""

import errno
import socket
import ssl

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
CERTIFICATE_TEXTS = dict.fromkeys((7, 18, 19, 20, 21), "certificate signed by unknown authority") | dict.fromkeys(
    (9, 10), "certificate has expired or is not yet valid"
)
"""Texts by OpenSSL's verification codes (X509_V_ERR_*): 7 and 18 to 21 are about signers, 9 and 10 about dates."""
TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
"""The text of a request that exceeded its time limit."""


class NoResponse(Exception):
    """A request that got no response.

    Args:
        cause: the reason, in Go's words.
        broken: whether an established connection was lost, so that the same request may succeed on another.
        unanswered: whether no byte of a response had arrived.
    """

    def __init__(self, cause: str, *, broken: bool = False, unanswered: bool = False) -> None:
        super().__init__(cause)
        self.cause = cause
        self.broken = broken
        self.unanswered = unanswered


def of_dial(error: BaseException, address: str) -> NoResponse:
    """The error of a connection to `address` (`host:port`) that could not be made because of `error`."""
    match error:
        case socket.gaierror():
            return NoResponse(f"dial tcp: lookup {address.rpartition(':')[0].strip('[]')}: no such host")
        case ssl.SSLCertVerificationError():
            certificate_text = CERTIFICATE_TEXTS.get(error.verify_code)
            return NoResponse(f"tls: failed to verify certificate: x509: {certificate_text or error.verify_message}")
        case ssl.SSLError():
            return NoResponse(f"tls: {error.strerror or error.reason or error}")
        case TimeoutError() if error.errno is None:
            return NoResponse(f"dial tcp {address}: i/o timeout")
        case ConnectionAbortedError() | EOFError():
            return NoResponse("tls: the handshake was not finished: EOF")
        case OSError():
            return NoResponse(f"dial tcp {address}: connect: {_errno_text(error)}")
        case _:
            return NoResponse(str(error) or type(error).__name__)


def of_read(error: BaseException | None, address: str, *, unanswered: bool) -> NoResponse:
    """The error of an established connection that ended too early.

    Args:
        error: what ended it; None if the server closed it.
        address: `host:port`.
        unanswered: whether no byte of the response had arrived.
    """
    if error is None:
        return NoResponse("EOF" if unanswered else "unexpected EOF", broken=True, unanswered=unanswered)
    if isinstance(error, ssl.SSLError):
        return NoResponse(f"tls: {error.strerror or error.reason or error}", broken=True, unanswered=unanswered)
    if isinstance(error, OSError):
        broken = error.errno in (errno.ECONNRESET, errno.EPIPE)
        return NoResponse(f"read tcp {address}: {_errno_text(error)}", broken=broken, unanswered=unanswered)
    return NoResponse(str(error) or type(error).__name__, broken=True, unanswered=unanswered)


def _errno_text(error: OSError) -> str:
    """The error in Go's words by its errno; of several attempts to connect, the first one's."""
    number = error.errno
    if number is None and (attempt_errors := getattr(error, "exceptions", ())):
        number = getattr(attempt_errors[0], "errno", None)
    return ERRNO_TEXTS.get(number or 0) or (error.strerror or str(error)).lower()
