"""The certificate with which this server vouches for users."""

from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podscaler.controlplane.credentials import certificates, front_proxy

NOW_NS = 1_767_225_600_000_000_000


def test_its_authority_vouches_for_nothing_else(tmp_path: Path) -> None:
    """It is another one than that of clients: who has a client's certificate is no front proxy."""
    clients = certificates.ensure(tmp_path, now_ns=NOW_NS).authority_pem
    made = front_proxy.ensure(tmp_path / "front-proxy", now_ns=NOW_NS)
    assert made.authority_pem != clients
    certificate = x509.load_pem_x509_certificate(made.client_path.read_bytes())
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(made.authority_pem))
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert [name.value for name in names] == ["front-proxy-client"]
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_its_files_are_secret_and_its_authority_stays(tmp_path: Path) -> None:
    """Only the owner may read the keys; other servers need not be told anew after a restart."""
    first = front_proxy.ensure(tmp_path / "front-proxy", now_ns=NOW_NS)
    second = front_proxy.ensure(tmp_path / "front-proxy", now_ns=NOW_NS)
    assert first.authority_pem == second.authority_pem
    assert first.client_path.read_bytes() == second.client_path.read_bytes()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "front-proxy").iterdir()}
    assert modes == {"ca.pem": 0o600, "client.pem": 0o600}
