"""Certificates from memory: they need no folder for temporary files, and leave nothing behind."""

import datetime
import os
import tempfile
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podscaler.base.errors import UsageError
from podscaler.base.memory_file import MemoryFile
from podscaler.kube.serving import serving_certificate
from podscaler.kube.transport import tls
from podscaler.kube.transport.config import Config


@pytest.fixture(autouse=True)
def _no_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a read-only root file system."""
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")


def _client_pem() -> bytes:
    """A certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin.replace(year=2120))
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8
    return pem + key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


def test_a_memory_file() -> None:
    """It may be read several times, from its beginning."""
    with MemoryFile(b"text") as path:
        assert [Path(path).read_bytes() for _ in range(2)] == [b"text"] * 2


def test_the_end_of_a_memory_file() -> None:
    """Its descriptor is closed, once."""
    before = _descriptors()
    file = MemoryFile(b"text")
    file.close()
    file.close()
    assert _descriptors() == before


def test_a_client_certificate() -> None:
    """It is loaded, and no descriptor stays open."""
    before = _descriptors()
    tls.server_context(Config("https://server"), _client_pem())
    assert _descriptors() == before


def test_a_client_certificate_that_cannot_be_used() -> None:
    """The failure is about the certificate, not about a file."""
    before = _descriptors()
    with pytest.raises(UsageError, match="client-certificate and client-key cannot be used"):
        tls.server_context(Config("https://server"), b"no certificate")
    assert _descriptors() == before


def test_a_serving_certificate() -> None:
    """A self-signed one is made in memory."""
    assert serving_certificate.self_signed_context(["a"]).cert_store_stats()["x509"] == 0
