"""Creates the certificate authority (CA) of the control plane, the API server's certificate and client certificates.

`cli.up` calls it in a thread: `ensure` keeps the files of the API server, `node_context` that of the node's endpoints,
`ensure_client` that of a user. A further certificate needs a function like these. The CA is valid for ten years and is
never replaced, as kubeconfigs embed it; other certificates are renewed `RENEWAL_MARGIN` before they expire, those of
servers also if they lack a DNS name or address.

Source: RFC 5280; the DNS names are those by which pods of a cluster reach the API server.
"""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files

AUTHORITY_LIFE = timedelta(days=3650)
SERVER_LIFE = timedelta(days=365)
CLIENT_LIFE = timedelta(days=365)
RENEWAL_MARGIN = timedelta(days=30)
CLOCK_SKEW = timedelta(hours=1)
"""A certificate is valid from this long before its creation, for clients with a slow clock."""

DNS_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
ADDRESSES = ("127.0.0.1", "::1")
"""The loopback IP addresses that every server certificate contains."""
# `podscaler.controlplane.registry.users` has NODE_PREFIX and MASTERS, too; this package may not import it
NODE_PREFIX = "system:node:"
"""The user name of a node is this prefix and the node's name."""
NODES = "system:nodes"
"""The group of all nodes."""
KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""The user name of the API server at the node's endpoints."""
MASTERS = "system:masters"
"""The group that may do everything."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The certificates of a server and of the CA that signed it.

    Attributes:
        authority_pem: the CA's certificate.
        server_path: a PEM file with the server's key and certificate (0600).
    """

    authority_pem: bytes
    server_path: Path

    def server_context(self) -> ssl.SSLContext:
        """The TLS settings of the server: TLS 1.2 or later; client certificates are optional. Raises OSError."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.server_path)
        context.load_verify_locations(cadata=self.authority_pem.decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context

    def client_context(self) -> ssl.SSLContext:
        """The TLS settings of a client that trusts this CA and no other."""
        return ssl.create_default_context(cadata=self.authority_pem.decode())


@dataclass(frozen=True, slots=True)
class CertifiedKey:
    """A private key with its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def pem(self) -> bytes:
        """Both, as PEM."""
        return _key_pem(self.key) + _certificate_pem(self.certificate)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as an unencrypted PEM file (PKCS #8)."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def utc(now_ns: int) -> datetime:
    """The time of certificates for an instant, in whole seconds."""
    return datetime.fromtimestamp(now_ns // NANOSECONDS, UTC)


def ensure(folder: Path, *, now_ns: int, addresses: Sequence[str] = ()) -> Certificates:
    """The certificates in `folder`, created or renewed as needed. Blocks.

    Args:
        folder: where `ca.pem` and `server.pem` are kept, each key and certificate in one file (0600).
        now_ns: the wall clock, nanoseconds since the epoch.
        addresses: IP addresses besides the loopback ones for the server's certificate.

    Raises:
        UsageError: the files cannot be read or written, or hold no key and certificate.
    """
    now = utc(now_ns)
    authority = _ensure_authority(folder / "ca.pem", now)
    names = _alternative_names(addresses)
    path = folder / "server.pem"
    stored = _load_pair(path)
    if stored is None or not _is_current_server(stored, authority, names, now):
        secret_files.write(path, _new_server(_common_name("kube-apiserver"), authority, names, now).pem())
    return Certificates(_certificate_pem(authority.certificate), path)


def node_context(folder: Path, node_name: str, address: str, *, now_ns: int) -> ssl.SSLContext:
    """The TLS settings of the node's endpoints; their certificate is kept in `folder`/node.pem. Blocks.

    Args:
        folder: as for `ensure`.
        node_name: the Node's name, one of the certificate's DNS names.
        address: the node's IP address.
        now_ns: the wall clock.

    Raises:
        UsageError: a file cannot be read or written, or holds no key and certificate.
    """
    now = utc(now_ns)
    authority = _ensure_authority(folder / "ca.pem", now)
    names = x509.SubjectAlternativeName([x509.DNSName(node_name), x509.IPAddress(ip_address(address))])
    path = folder / "node.pem"
    stored = _load_pair(path)
    if stored is None or not _is_current_server(stored, authority, names, now):
        subject = _subject(f"{NODE_PREFIX}{node_name}", [NODES])
        secret_files.write(path, _new_server(subject, authority, names, now).pem())
    return Certificates(_certificate_pem(authority.certificate), path).server_context()


def kubelet_client_context(folder: Path, *, now_ns: int) -> ssl.SSLContext:
    """The TLS settings of the API server as a client of the node's endpoints, with a certificate of its own. Blocks.

    Raises UsageError as `ensure_client`.
    """
    path = folder / "kubelet-client.pem"
    ensure_client(path, KUBELET_CLIENT, [MASTERS], now_ns=now_ns)
    context = ssl.create_default_context(cadata=authority_of(folder, now_ns=now_ns).decode())
    context.load_cert_chain(path)
    return context


@dataclass(frozen=True, slots=True)
class ClientPair:
    """A client's certificate and its private key, as PEM."""

    certificate_pem: bytes
    key_pem: bytes


def new_client(folder: Path, name: str, groups: Sequence[str], *, now_ns: int) -> ClientPair:
    """A new client certificate with its key, signed by the CA in `folder`; valid for `CLIENT_LIFE`.

    Args:
        folder: as for `ensure`.
        name: the user name, as common name.
        groups: the user's groups, as organizations.
        now_ns: the wall clock.

    Raises:
        UsageError: the authority cannot be read or written.
    """
    now = utc(now_ns)
    authority = _ensure_authority(folder / "ca.pem", now)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_subject(name, groups), authority.certificate.subject, key, now=now, life=CLIENT_LIFE)
    builder = _add_end_entity_usage(builder, ExtendedKeyUsageOID.CLIENT_AUTH)
    certificate = builder.sign(authority.key, hashes.SHA256())
    return ClientPair(_certificate_pem(certificate), _key_pem(key))


def ensure_client(path: Path, name: str, groups: Sequence[str], *, now_ns: int) -> ClientPair:
    """The client certificate in the file `path` (mode 0600), created or renewed as needed as by `new_client`. Blocks.

    Raises UsageError if the file or the authority cannot be read or written, or holds no key and certificate.
    """
    now = utc(now_ns)
    authority = _ensure_authority(path.parent / "ca.pem", now)
    stored = _load_pair(path)
    subject = _subject(name, groups)
    if stored is not None and _is_current(stored, authority, now) and stored.certificate.subject == subject:
        return ClientPair(_certificate_pem(stored.certificate), _key_pem(stored.key))
    created = new_client(path.parent, name, groups, now_ns=now_ns)
    secret_files.write(path, created.key_pem + created.certificate_pem)
    return created


def authority_of(folder: Path, *, now_ns: int) -> bytes:
    """The certificate (PEM) of the CA in `folder`, which is created if it is missing. Blocks.

    Raises UsageError if the file cannot be read or written, or holds no key and certificate.
    """
    authority = _ensure_authority(folder / "ca.pem", utc(now_ns))
    return _certificate_pem(authority.certificate)


def signing_authority(folder: Path, *, now_ns: int) -> CertifiedKey:
    """The CA in `folder` with its key, which must not leave this package. Blocks.

    Raises UsageError if the file cannot be read or written, or holds no key and certificate.
    """
    return _ensure_authority(folder / "ca.pem", utc(now_ns))


def _ensure_authority(path: Path, now: datetime) -> CertifiedKey:
    """The CA in the file `path`, which is created if it is missing. Raises UsageError."""
    stored = _load_pair(path)
    if stored is not None:
        return stored
    created = _new_authority(now)
    secret_files.write(path, created.pem())
    return created


def _load_pair(path: Path) -> CertifiedKey | None:
    """The key and certificate in a file, None if the file does not exist. Raises UsageError."""
    content = secret_files.read(path)
    if content is None:
        return None
    try:
        key = serialization.load_pem_private_key(content, None)
        certificate = x509.load_pem_x509_certificate(content)
    except ValueError as error:
        raise UsageError(f"{path} does not hold a key and a certificate: remove it to have new ones made") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise UsageError(f"{path} holds a key of another kind: remove it to have a new one made")
    return CertifiedKey(key, certificate)


def _is_current_server(
    pair: CertifiedKey, authority: CertifiedKey, names: x509.SubjectAlternativeName, now: datetime
) -> bool:
    """Whether a server certificate is current and has all `names`."""
    try:
        stored_names = pair.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:  # a certificate that others have made
        return False
    return _is_current(pair, authority, now) and set(names) <= set(stored_names)


def _is_current(pair: CertifiedKey, authority: CertifiedKey, now: datetime) -> bool:
    """Whether a certificate is of this CA and stays valid for `RENEWAL_MARGIN`."""
    certificate = pair.certificate
    if certificate.not_valid_after_utc - RENEWAL_MARGIN < now or certificate.not_valid_before_utc > now:
        return False
    return certificate.issuer == authority.certificate.subject


def _subject(name: str, groups: Sequence[str]) -> x509.Name:
    """The subject of a user's certificate: the user name is the common name, groups are organizations."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _new_authority(now: datetime) -> CertifiedKey:
    """A new key with its self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    random_suffix = f"{x509.random_serial_number() % 16**8:08x}"  # `_is_current` compares the names of authorities
    name = _common_name(f"podscaler-{random_suffix}")
    builder = _builder(name, name, key, now=now, life=AUTHORITY_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
    return CertifiedKey(key, builder.sign(key, hashes.SHA256()))


def _new_server(
    subject: x509.Name, authority: CertifiedKey, names: x509.SubjectAlternativeName, now: datetime
) -> CertifiedKey:
    """A new key and its certificate for a server of these names, signed by the authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(subject, authority.certificate.subject, key, now=now, life=SERVER_LIFE)
    builder = _add_end_entity_usage(builder, ExtendedKeyUsageOID.SERVER_AUTH)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(names, critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    return CertifiedKey(key, builder.sign(authority.key, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    """A certificate of a key, with a random number and a life that begins a little before now."""
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - CLOCK_SKEW).not_valid_after(now + life)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _add_end_entity_usage(builder: x509.CertificateBuilder, usage: x509.ObjectIdentifier) -> x509.CertificateBuilder:
    """The builder of a certificate that signs no others; `usage` is client or server authentication."""
    builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
    return builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)


def _common_name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """What a key may be used for: signatures, and those of an authority also certificates."""
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_names(addresses: Sequence[str]) -> x509.SubjectAlternativeName:
    """The names of the API server's certificate: DNS_NAMES, ADDRESSES and further IP addresses."""
    dns = [x509.DNSName(name) for name in DNS_NAMES]
    unique = dict.fromkeys((*ADDRESSES, *addresses))
    return x509.SubjectAlternativeName([*dns, *(x509.IPAddress(ip_address(address)) for address in unique)])
