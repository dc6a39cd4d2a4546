"""The controller's endpoints over HTTPS, with a certificate that is renewed while it runs."""

import asyncio
import datetime
import gc
import socket
import ssl
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podscaler.base import http_server
from podscaler.base.errors import UsageError
from podscaler.controller.server.serving import Endpoints
from podscaler.controller.telemetry.telemetry import Telemetry
from podscaler.kube.serving.serving_certificate import PERIOD_S, ServingCertificate
from podscaler.testing import VirtualClock

START = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


class Files:
    """A certificate and its key."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "tls.crt"
        self.key = folder / "tls.key"
        self.password: bytes | None = None

    def issue(self, serial: int) -> None:
        """Write a new pair."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "podscaler")])
        builder = x509.CertificateBuilder(name, name, key.public_key(), serial, START, START.replace(year=2120))
        self.certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if self.password:
            encryption = serialization.BestAvailableEncryption(self.password)
        self.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A pair with the serial number 1."""
    made = Files(tmp_path)
    made.issue(1)
    return made


class World:
    """Endpoints over HTTPS, and who looks after their certificate."""

    def __init__(self, files: Files) -> None:
        self.clock = VirtualClock()
        self.certificate = ServingCertificate(files.certificate, files.key)
        self.endpoints = Endpoints(Telemetry(self.clock), list)
        self.port = 0

    async def serial(self) -> int:
        """Of the certificate that a new connection is shown, by which /healthz says ok."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        await writer.wait_closed()
        assert answer.endswith(b"\r\n\r\nok")
        return x509.load_der_x509_certificate(shown).serial_number


@pytest.fixture
async def world(files: Files) -> AsyncIterator[World]:
    """Serving."""
    made = World(files)
    made.port = int((await made.endpoints.start("127.0.0.1", 0, made.certificate.context)).rpartition(":")[2])
    yield made
    await made.endpoints.stop()


async def test_a_renewed_certificate_is_shown_to_new_connections(world: World, files: Files) -> None:
    """Without a restart, and without closing anything."""
    before = await world.serial()
    files.issue(2)
    world.certificate.renew()
    assert (before, await world.serial()) == (1, 2)


def test_a_server_that_stops_leaves_no_connection_open(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits neither for the first request of a new connection nor for a client that does not end its TLS."""
    monkeypatch.setattr(http_server, "CLOSE_TIMEOUT_S", 0.01)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    clients: list[ssl.SSLSocket] = []

    def connect(address: str) -> None:
        host, _, port = address.rpartition(":")
        clients.append(context.wrap_socket(socket.create_connection((host, int(port)))))

    async def serve() -> None:
        endpoints = Endpoints(Telemetry(VirtualClock()), list)
        certificate = ServingCertificate(files.certificate, files.key)
        address = await endpoints.start("127.0.0.1", 0, certificate.context)
        await asyncio.to_thread(connect, address)
        await endpoints.stop()

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        asyncio.run(serve())
        gc.collect()
    clients[0].close()
    assert [str(warning.message) for warning in seen] == []


async def test_files_are_looked_at_every_minute(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as the controller runs."""
    clock, looks = VirtualClock(), asyncio.Queue[float]()
    loop = asyncio.get_running_loop()
    certificate = ServingCertificate(files.certificate, files.key)
    monkeypatch.setattr(
        certificate, "renew", lambda: loop.call_soon_threadsafe(looks.put_nowait, clock.monotonic_s() - start_s)
    )
    start_s = clock.monotonic_s()
    following = asyncio.ensure_future(certificate.follow(clock))
    await clock.advance(PERIOD_S - 1)
    assert looks.empty()
    await clock.advance(1)
    found = await looks.get()
    following.cancel()
    assert found == PERIOD_S


@pytest.mark.parametrize("broken", ["certificate", "key"])
async def test_files_that_do_not_fit_change_nothing(
    world: World, files: Files, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Half of a renewal, or a file that is gone: the last pair serves on, and the log says so."""
    kept = {name: getattr(files, name).read_bytes() for name in ("certificate", "key")}
    files.issue(2)
    getattr(files, broken).write_bytes(kept[broken])
    world.certificate.renew()
    files.key.unlink()
    world.certificate.renew()
    assert await world.serial() == 1
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == [
        "not a certificate in PEM with its key; the last one stays in use",
        "No such file or directory; the last one stays in use",
    ]


def test_files_that_cannot_be_used_are_named(files: Files, tmp_path: Path) -> None:
    """Missing, no PEM, or an encrypted key, for which nobody is asked on a terminal."""
    missing, text = tmp_path / "missing", tmp_path / "text"
    text.write_text("no certificate")
    said = []
    for certificate, key in ((missing, files.key), (text, files.key), (files.certificate, text)):
        with pytest.raises(UsageError) as refused:
            ServingCertificate(certificate, key)
        said.append(str(refused.value).rpartition(": ")[2])
    files.password = b"secret"
    files.issue(3)
    with pytest.raises(UsageError) as refused:
        ServingCertificate(files.certificate, files.key)
    said.append(str(refused.value))
    flags = f"--tls-cert-file {files.certificate}, --tls-private-key-file {files.key}"
    assert said == [
        "No such file or directory",
        "not a certificate in PEM with its key",
        "not a certificate in PEM with its key",
        f"{flags}: the key is encrypted",
    ]
