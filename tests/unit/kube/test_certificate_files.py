"""Client certificates in files that somebody renews."""

import datetime
import ssl
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from podscaler.base.certificate_pair import CertificatePair
from podscaler.kube.config import kubeconfig
from podscaler.kube.config.certificate_files import CertificateFiles
from podscaler.testing import VirtualClock


def _issued(name: str) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return certificate.public_bytes(pem), private


async def test_a_renewed_certificate_is_taken_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Within a minute what is in the files counts; not while only one of them is new, or one is missing."""
    clock = VirtualClock()
    files = tmp_path / "crt", tmp_path / "key"
    old, new = _issued("old"), _issued("new")
    for file, data in zip(files, old, strict=True):
        file.write_bytes(data)
    certificates = CertificateFiles(*files, clock, b"\n".join(old))
    seen = []
    for change in (
        lambda: files[0].write_bytes(new[0]),
        files[1].unlink,
        lambda: files[1].write_bytes(new[1]),
    ):
        change()
        await clock.advance(59)
        early = await certificates.pem()
        await clock.advance(1)
        seen.append((early, await certificates.pem()))
    old_pem, new_pem = b"\n".join(old), b"\n".join(new)
    assert seen == [(old_pem, old_pem), (old_pem, old_pem), (old_pem, new_pem)]
    assert caplog.text.count("the last one stays in use") == 2


def test_a_kubeconfig_that_names_files(tmp_path: Path) -> None:
    """Files are followed, relative to the kubeconfig; data is not."""
    certificate, key = _issued("ann")
    (tmp_path / "crt").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)
    document = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h"}}],
        "users": [{"name": "u", "user": {"client-certificate": "crt", "client-key": "key"}}],
    }
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(document))
    config = kubeconfig.load([path], None, VirtualClock())
    assert isinstance(config.certificates, CertificateFiles)
    assert (config.client_certificate_pem, config.client_key_pem) == (certificate, key)


def test_a_pair_that_is_replaced_while_it_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pair that was read counts only if it is the one that was checked."""
    files = tmp_path / "crt", tmp_path / "key"
    first, second = _issued("first"), _issued("second")
    pair = CertificatePair(*files)
    for file, data in zip(files, first, strict=True):
        file.write_bytes(data)

    def replace(context: ssl.SSLContext) -> None:
        for file, data in zip(files, second, strict=True):
            file.write_bytes(data)

    with monkeypatch.context() as patched:
        patched.setattr(pair, "load_into", replace)
        seen = [(pair.read_again(), pair.pem)]
    seen += [(pair.read_again(), pair.pem) for _ in range(2)]
    second_pem = b"\n".join(second)
    assert seen == [(False, b""), (True, second_pem), (False, second_pem)]
