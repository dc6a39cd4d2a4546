"""Certificates, tokens and kubeconfigs: what is in the files, and who may read them."""

import base64
import json
import ssl
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError
from podscaler.controlplane.auth import authenticator
from podscaler.controlplane.credentials import certificates, kubeconfig, secret_files
from podscaler.controlplane.registry.users import User

NOW_NS = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * NANOSECONDS
DAY_NS = 86_400 * NANOSECONDS


def mode(path: Path) -> int:
    """The permission bits of a file."""
    return path.stat().st_mode & 0o777


def test_certificates_name_the_server(tmp_path: Path) -> None:
    """The server's certificate is signed by the authority and names every way to reach the server."""
    made = certificates.ensure(tmp_path / "pki", now_ns=NOW_NS, addresses=["127.5.0.1"])
    authority = x509.load_pem_x509_certificate(made.authority_pem)
    server = x509.load_pem_x509_certificate(made.server_path.read_bytes())
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    assert names.get_values_for_type(x509.IPAddress) == [ip_address(a) for a in ("127.0.0.1", "::1", "127.5.0.1")]
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_certificate_files_are_secret(tmp_path: Path) -> None:
    """Only the owner may read the keys, or look into their folder."""
    certificates.ensure(tmp_path / "pki", now_ns=NOW_NS)
    found = {path.name: mode(path) for path in (tmp_path / "pki").iterdir()}
    assert (found, mode(tmp_path / "pki")) == ({"ca.pem": 0o600, "server.pem": 0o600}, 0o700)


@pytest.mark.parametrize(
    ("days_later", "addresses", "is_renewed"),
    [
        pytest.param(0, [], False, id="at once"),
        pytest.param(334, [], False, id="31 days before it expires"),
        pytest.param(336, [], True, id="29 days before it expires"),
        pytest.param(0, ["127.9.0.1"], True, id="a new address"),
    ],
)
def test_certificate_renewal(tmp_path: Path, days_later: int, addresses: list[str], is_renewed: bool) -> None:
    """The server's certificate is renewed only when it must be; the authority stays, for kubeconfigs embed it."""
    first = certificates.ensure(tmp_path, now_ns=NOW_NS)
    before = first.server_path.read_bytes()
    second = certificates.ensure(tmp_path, now_ns=NOW_NS + days_later * DAY_NS, addresses=addresses)
    assert second.authority_pem == first.authority_pem
    assert (second.server_path.read_bytes() != before) == is_renewed


def test_certificate_without_names_is_renewed(tmp_path: Path) -> None:
    """A server's certificate that has no alternative names, as one of other tools, is replaced."""
    first = certificates.ensure(tmp_path, now_ns=NOW_NS)
    first.server_path.write_bytes((tmp_path / "ca.pem").read_bytes())
    second = certificates.ensure(tmp_path, now_ns=NOW_NS)
    assert second.server_path.read_bytes() != (tmp_path / "ca.pem").read_bytes()


def test_server_context_loads(tmp_path: Path) -> None:
    """The TLS settings are made from the file, and refuse what is older than TLS 1.2."""
    context = certificates.ensure(tmp_path, now_ns=NOW_NS).server_context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_broken_certificate_file(tmp_path: Path) -> None:
    """A file that holds something else is named in one sentence."""
    (tmp_path / "ca.pem").write_bytes(b"nonsense")
    with pytest.raises(UsageError, match=r"ca\.pem does not hold a key and a certificate: remove it"):
        certificates.ensure(tmp_path, now_ns=NOW_NS)


def test_token_is_made_once(tmp_path: Path) -> None:
    """The second start finds the token of the first; the file is secret."""
    path = tmp_path / "token"
    first = authenticator.ensure_token(path)
    assert (authenticator.ensure_token(path), mode(path), len(first) >= 43) == (first, 0o600, True)


def test_token_file_without_a_token(tmp_path: Path) -> None:
    """An emptied token file does not become an empty password."""
    (tmp_path / "token").write_text("\n")
    with pytest.raises(UsageError, match="holds no token"):
        authenticator.ensure_token(tmp_path / "token")


def test_kubeconfig(tmp_path: Path) -> None:
    """A kubeconfig has the server, the authority and the token, and is secret."""
    path = tmp_path / "config"
    kubeconfig.write(
        path, kubeconfig.token_document(server_url="https://127.0.0.1:6443", authority_pem=b"PEM", token="t")
    )
    assert mode(path) == 0o600
    assert json.loads(path.read_text()) == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "podscaler",
                "cluster": {
                    "server": "https://127.0.0.1:6443",
                    "certificate-authority-data": base64.b64encode(b"PEM").decode(),
                },
            }
        ],
        "users": [{"name": "podscaler", "user": {"token": "t"}}],
        "contexts": [
            {
                "name": "podscaler",
                "context": {"cluster": "podscaler", "user": "podscaler", "namespace": "default"},
            }
        ],
        "current-context": "podscaler",
    }


def test_unwritable_place(tmp_path: Path) -> None:
    """A file that cannot be written is a sentence, and leaves nothing behind."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        secret_files.write(tmp_path / "file" / "below", b"")


OURS = kubeconfig.token_document(server_url="https://127.0.0.1:6443", authority_pem=b"PEM", token="t")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(
            b"clusters:\n- {name: podscaler, cluster: {}}\n- {name: work, cluster: {}}\n", id="other clusters"
        ),
        pytest.param(b"clusters:\n- {name: work, cluster: {}}\n", id="another cluster"),
        pytest.param(b"apiVersion: v1\nkind: Pod\n", id="another kind"),
        pytest.param(b"not: [yaml", id="no YAML"),
    ],
)
def test_nobody_loses_a_kubeconfig(tmp_path: Path, content: bytes) -> None:
    """A file with anything but our own cluster in it is refused and stays as it is."""
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=f"{path} holds something else, which would be lost"):
        kubeconfig.write(path, OURS)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(json.dumps(OURS).encode(), id="of an earlier run"),
        pytest.param(b"clusters:\n- cluster: {}\n  name: podscaler\n", id="written again by kubectl"),
        pytest.param(b"\n", id="empty"),
    ],
)
def test_our_own_kubeconfig_is_renewed(tmp_path: Path, content: bytes) -> None:
    """Every start writes it anew: port and token may have changed."""
    path = tmp_path / "config"
    path.write_bytes(content)
    kubeconfig.write(path, OURS)
    assert json.loads(path.read_bytes()) == OURS


def test_a_clients_certificate(tmp_path: Path) -> None:
    """A client's certificate names user and groups, is signed by the authority, and is good for clients only."""
    certificates.ensure(tmp_path, now_ns=NOW_NS)
    pair = certificates.new_client(tmp_path, "ann", ("devs", "ops"), now_ns=NOW_NS)
    made = x509.load_pem_x509_certificate(pair.certificate_pem)
    authority = x509.load_pem_x509_certificate((tmp_path / "ca.pem").read_bytes())
    made.verify_directly_issued_by(authority)
    assert [(part.rfc4514_attribute_name, part.value) for part in made.subject] == [
        ("O", "devs"),
        ("O", "ops"),
        ("CN", "ann"),
    ]
    usage = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]


DAY_NS = 86_400 * 1_000_000_000


@pytest.mark.parametrize(
    ("name", "later_ns", "is_kept"),
    [
        pytest.param("ann", 300 * DAY_NS, True, id="good for two months more"),
        pytest.param("ann", 336 * DAY_NS, False, id="about to expire"),
        pytest.param("ben", 0, False, id="another user"),
    ],
)
def test_a_clients_certificate_is_kept_while_it_is_good(
    tmp_path: Path, name: str, later_ns: int, is_kept: bool
) -> None:
    """A start rewrites no credentials that are there and valid; others are made anew and kept."""
    path = tmp_path / "client.pem"
    first = certificates.ensure_client(path, "ann", (), now_ns=NOW_NS)
    again = certificates.ensure_client(path, name, (), now_ns=NOW_NS + later_ns)
    assert (again == first) == is_kept
    assert path.read_bytes() == again.key_pem + again.certificate_pem


def test_a_clients_certificate_of_another_authority_is_replaced(tmp_path: Path) -> None:
    """The authority may be one that was restored."""
    path = tmp_path / "client.pem"
    first = certificates.ensure_client(path, "ann", (), now_ns=NOW_NS)
    (tmp_path / "ca.pem").unlink()
    assert certificates.ensure_client(path, "ann", (), now_ns=NOW_NS) != first


def test_a_secret_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    """The same content needs no space; another mode or content is put right."""
    path = tmp_path / "token"
    secret_files.write(path, b"secret")
    before = path.stat()
    secret_files.write(path, b"secret")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    path.chmod(0o644)
    secret_files.write(path, b"secret")
    assert path.stat().st_mode & 0o777 == 0o600
    secret_files.write(path, b"other")
    assert path.read_bytes() == b"other"


@pytest.mark.parametrize(
    ("certificate", "user"),
    [
        pytest.param(None, None, id="none"),
        pytest.param({}, None, id="one that was not asked for"),
        pytest.param({"subject": ((("organizationName", "g"),),)}, None, id="one without a name"),
        pytest.param(
            {"subject": ((("organizationName", "g"),), (("organizationName", "h"),), (("commonName", "ann"),))},
            User("ann", ("g", "h")),
            id="one with a name",
        ),
    ],
)
def test_the_user_of_a_certificate(certificate: Any, user: User | None) -> None:
    """The common name is the user, the organizations are the groups."""
    assert authenticator.user_of_certificate(certificate) == user
