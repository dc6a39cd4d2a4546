"""The small parts of the aggregation layer: words for failures, headers, addresses."""

import errno
import socket
import ssl
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict, CIMultiDictProxy

from podscaler.controlplane.aggregator import connection_messages, proxy_headers
from podscaler.controlplane.registry.users import User

KEY = cast("ConnectionKey", SimpleNamespace(host="h", port=1, is_ssl=True, ssl=True))


def refused(number: int) -> OSError:
    """A failed connect."""
    return OSError(number, "said by the system")


def unverified(code: int) -> Exception:
    """A certificate that is not believed."""
    error = ssl.SSLCertVerificationError("said by OpenSSL")
    error.verify_code = code
    return aiohttp.ClientConnectorCertificateError(KEY, error)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(TimeoutError(), "context deadline exceeded", id="time"),
        pytest.param(aiohttp.ServerTimeoutError(), "context deadline exceeded", id="time to connect"),
        pytest.param(
            aiohttp.ClientConnectorError(KEY, refused(errno.ECONNREFUSED)),
            "dial tcp 127.5.0.1:443: connect: connection refused",
            id="refused",
        ),
        pytest.param(
            aiohttp.ClientConnectorError(KEY, refused(errno.EHOSTUNREACH)),
            "dial tcp 127.5.0.1:443: connect: no route to host",
            id="no route",
        ),
        pytest.param(
            aiohttp.ClientConnectorError(KEY, refused(errno.EMFILE)),
            "dial tcp 127.5.0.1:443: connect: said by the system",
            id="another error",
        ),
        pytest.param(
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(-2, "unknown")),
            "dial tcp: lookup 127.5.0.1: no such host",
            id="no such name",
        ),
        pytest.param(
            aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1, "wrong version number")),
            "tls: first record does not look like a TLS handshake",
            id="no TLS",
        ),
        pytest.param(aiohttp.ServerDisconnectedError(), "EOF", id="no answer"),
        pytest.param(refused(errno.ECONNRESET), "connection reset by peer", id="reset"),
        pytest.param(
            unverified(10),
            "tls: failed to verify certificate: x509: certificate has expired or is not yet valid",
            id="expired",
        ),
        pytest.param(
            unverified(62),
            "tls: failed to verify certificate: x509: certificate is not valid for s.n.svc",
            id="of another name",
        ),
        pytest.param(
            unverified(20),
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            id="of another authority",
        ),
    ],
)
def test_words(error: Exception, words: str) -> None:
    """A failure is told as users of Kubernetes know it."""
    assert connection_messages.go_message(error, "127.5.0.1", 443, "s.n.svc") == words


def test_headers_of_a_user() -> None:
    """Who is known belongs to everyone known; who is only supposed has no groups but those given."""
    known = User("a", ("g",), "1", {"k%": ["x"]})
    assert list(proxy_headers.user_headers(known).items()) == [
        ("X-Remote-User", "a"),
        ("X-Remote-Uid", "1"),
        ("X-Remote-Group", "g"),
        ("X-Remote-Group", "system:authenticated"),
        ("X-Remote-Extra-k%25", "x"),
    ]
    assert list(proxy_headers.user_headers(proxy_headers.DISCOVERY_USER).items()) == [
        ("X-Remote-User", "system:kube-aggregator")
    ]


@pytest.mark.parametrize(
    "header",
    [
        "Authorization",
        "Impersonate-User",
        "Proxy-Authorization",
        "Sec-WebSocket-Protocol",
        "X-Remote-User",
        "x-remote-group",
        "X-REMOTE-EXTRA-scopes",
        "Upgrade",
        "Transfer-Encoding",
    ],
)
def test_headers_that_stay_here(header: str) -> None:
    """Credentials, claims and what is about the connection, in any case."""
    headers: Any = CIMultiDictProxy(CIMultiDict({header: "x", "Accept": "a"}))
    assert dict(proxy_headers.request_headers(headers)) == {"Accept": "a"}
