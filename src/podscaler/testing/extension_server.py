"""A fake extension API server (HTTPS, behind an APIService), for tests of the aggregation layer and of its clients.

It runs in the test's event loop, authenticates the front proxy by its client certificate, as servers made with
k8s.io/apiserver do, and records all requests. `write_certificate` makes its certificate.
"""

import ipaddress
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podscaler.base import http_server

HOST = "127.0.0.1"
STOP_TIMEOUT_S = 0.1
FRONT_PROXY = "front-proxy-client"
_VALIDITY = timedelta(days=365)


def write_certificate(path: Path, *names: str) -> bytes:
    """Write a key and a self-signed certificate for the hosts `names` to `path` (PEM); returns the certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "extension")])
    utc_now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(utc_now - _VALIDITY).not_valid_after(utc_now + _VALIDITY)
    builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_alternative_name(name) for name in names]), critical=False
        )
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8
    path.touch(0o600)
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()) + certificate)
    return certificate


def _alternative_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that the server got.

    Attributes:
        method: the HTTP method.
        path: the path with the query, as it was sent.
        headers: names and values, in order.
        body: the request's body.
        peer: the common name of the client's certificate; empty: the client sent none.
    """

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    peer: str

    def all(self, name: str) -> list[str]:
        """All values of a header; the name is not case-sensitive."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclass
class ExtensionServer:
    """An extension API server on a loopback port, with scripted responses.

    Attributes:
        certificate: a PEM file with its key and certificate.
        front_authority: the CA of the front proxy's certificate, as PEM.
        answers: JSON documents by path (without query), or async functions from the request to the response; other
            paths are 404, and requests of others than the front proxy 401.
        asked: all requests, in order.
        port: the port at which it listens; 0 before the first start.
    """

    certificate: Path
    front_authority: bytes
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    _runner: web.ServerRunner | None = None

    async def start(self) -> int:
        """Listen, at the former port if it was started before; returns the port."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        context.load_verify_locations(cadata=self.front_authority.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        self._runner = web.ServerRunner(http_server.Server(self._respond), shutdown_timeout=STOP_TIMEOUT_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self.port, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self.port

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Record a request, and return the response that `answers` has for its path, or a Status."""
        peer = _peer(request)
        headers = tuple(request.headers.items())
        self.asked.append(Asked(request.method, request.raw_path, headers, await request.content.read(), peer))
        if peer != FRONT_PROXY:
            return web.json_response(_status(401, "Unauthorized"), status=401)
        answer = self.answers.get(request.path)
        if callable(answer):
            response: web.StreamResponse = await answer(request)
            return response
        if answer is None:
            return web.json_response(_status(404, "NotFound"), status=404)
        return web.json_response(answer)


def _peer(request: web.BaseRequest) -> str:
    """The common name of the client's certificate; empty if it sent none."""
    certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
    parts: dict[str, str] = {key: value for part in (certificate or {}).get("subject", ()) for key, value in part}
    return parts.get("commonName", "")


def _status(code: int, reason: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
