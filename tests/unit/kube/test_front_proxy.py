"""Users by client certificates: the API server's front proxy with its headers, users, and everybody else."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from multidict import CIMultiDict

from podscaler.kube.client.client import Client
from podscaler.kube.serving import front_proxy
from podscaler.kube.serving.delegated_access import ReviewedUser
from podscaler.kube.serving.front_proxy import CONFIG_MAP, FrontProxyAuthentication
from podscaler.testing.clock import VirtualClock
from podscaler.testing.transport import ScriptedTransport, TransportFailure, json_answer

Signer = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]
START = datetime(2026, 1, 1, tzinfo=UTC)
HEADERS = {
    "X-Remote-User": "alice",
    "X-Remote-Group": "dev",
    "X-Remote-Extra-Example.com%2Fscopes": "a",
    "X-Remote-Uid": "7",
}


def signed(name: str, signer: Signer | None = None, *, groups: tuple[str, ...] = (), days: int = 3650) -> Signer:
    """A certificate of that common name, by another one or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name(parts)
    issuer, by = (subject, key) if signer is None else (signer[0].subject, signer[1])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(START - timedelta(days=5))
    builder = builder.not_valid_after(START - timedelta(days=5) + timedelta(days=days))
    builder = builder.add_extension(x509.BasicConstraints(signer is None, None), critical=True)
    return builder.sign(by, hashes.SHA256()), key


PROXY, CLIENTS = signed("front-proxy-ca"), signed("client-ca")


def pem(signer: Signer) -> str:
    """The certificate as text."""
    return signer[0].public_bytes(serialization.Encoding.PEM).decode()


def der(signer: Signer) -> bytes:
    """The certificate as a handshake has it."""
    return signer[0].public_bytes(serialization.Encoding.DER)


DATA = {
    "requestheader-client-ca-file": pem(PROXY),
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-uid-headers": '["X-Remote-Uid"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    "client-ca-file": pem(CLIENTS),
}


async def trusting(data: dict[str, str]) -> FrontProxyAuthentication:
    """An authentication that has read the ConfigMap."""
    transport, clock = ScriptedTransport(), VirtualClock()
    transport.on("GET", CONFIG_MAP, json_answer({"data": data}))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    found = FrontProxyAuthentication(Client(transport, clock), clock, context)
    await found.refresh()
    assert found.is_ready
    return found


async def test_the_front_proxy_names_the_user() -> None:
    """The user of the headers counts, with uid, groups and extra fields."""
    found = (await trusting(DATA)).find_user(der(signed("front-proxy-client", PROXY)), CIMultiDict(HEADERS))
    assert found == ReviewedUser("alice", "7", ("dev",), {"example.com/scopes": ("a",)})


async def test_a_user() -> None:
    """A certificate by the authority of clients is the user; headers do not count."""
    found = (await trusting(DATA)).find_user(der(signed("bob", CLIENTS, groups=("ops",))), CIMultiDict(HEADERS))
    assert found == ReviewedUser("bob", groups=("ops", "system:authenticated"))


@pytest.mark.parametrize(
    "certificate",
    [
        None,
        der(signed("front-proxy-client")),
        der(signed("other", PROXY)),
        der(signed("front-proxy-client", PROXY, days=1)),
        der(signed("front-proxy-client", signed("front-proxy-ca"))),
    ],
    ids=["none", "self-signed", "another name", "expired", "another authority of the name"],
)
async def test_nobody(certificate: bytes | None) -> None:
    """Any other certificate names no user, whatever the headers are."""
    assert (await trusting(DATA)).find_user(certificate, CIMultiDict(HEADERS)) is None


async def test_headers_without_a_user() -> None:
    """The front proxy without the header of a user is nobody."""
    found = (await trusting(DATA)).find_user(der(signed("front-proxy-client", PROXY)), CIMultiDict())
    assert found is None


async def test_without_authorities() -> None:
    """A cluster without a front proxy trusts no header."""
    found = (await trusting({})).find_user(der(signed("front-proxy-client", PROXY)), CIMultiDict(HEADERS))
    assert found is None


@pytest.mark.parametrize(
    "reply",
    [
        TransportFailure("connection refused"),
        json_answer({"data": {"requestheader-allowed-names": "{"}}),
        json_answer({"data": {"client-ca-file": "-----BEGIN CERTIFICATE-----"}}),
        json_answer([]),
    ],
    ids=["no server", "names", "certificate", "no ConfigMap"],
)
async def test_what_cannot_be_read(reply: object, caplog: pytest.LogCaptureFixture) -> None:
    """The authentication is not ready, the log says why, and nobody is trusted."""
    transport, clock = ScriptedTransport(), VirtualClock()
    transport.on("GET", front_proxy.CONFIG_MAP, reply)  # type: ignore[arg-type]  # each of the table is a reply
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    found = FrontProxyAuthentication(Client(transport, clock), clock, context)
    running = found.refresh()
    await running
    assert not found.is_ready
    assert "the authorities of the API server's proxy cannot be read" in caplog.text
