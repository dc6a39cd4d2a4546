"""Signs the PKCS #10 requests of the two built-in signers of client certificates with the cluster's authority.

`controllers.cluster.certificate_signing` calls `rejection` and `RequestSigner.sign`. The key of the authority is read
for each certificate and never leaves this package. Nothing of a request is logged.

Source: kube-controller-manager's csrsigning controllers in Kubernetes v1.37: usages and subjects, five minutes of
backdating, lives (--cluster-signing-duration of a year), and the extensions that a certificate gets.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podscaler.controlplane.credentials import certificates

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client-kubelet"
SIGNERS: Final = frozenset({CLIENT_SIGNER, KUBELET_CLIENT_SIGNER})
"""Another signer: a constant, and a function with its checks, which `rejection` calls."""
CLIENT_AUTH: Final = "client auth"
SIGNATURE: Final = "digital signature"
ENCIPHERMENT: Final = "key encipherment"
"""Usages that a request may name in `spec.usages`."""
LIFE_MAX: Final = timedelta(days=365)
LIFE_MIN: Final = timedelta(minutes=10)
SHORT_LIFE: Final = timedelta(hours=8)
"""The end of a certificate with a shorter life is not backdated."""
BACKDATE: Final = timedelta(minutes=5)
"""How long before its creation a certificate is valid, for clients with a slow clock."""
_TITLES_OF_NAME_TYPES: Final[Mapping[type[x509.GeneralName], str]] = {
    x509.DNSName: "DNS",
    x509.RFC822Name: "Email",
    x509.IPAddress: "IP",
    x509.UniformResourceIdentifier: "URI",
}
"""The kinds of alternative names that a certificate may have, as messages name them, in the order of the checks."""


def rejection(signer: str, request: x509.CertificateSigningRequest, usages: Sequence[str]) -> str:
    """Why a signer does not sign a request; empty if it does.

    Args:
        signer: one of SIGNERS.
        request: the parsed PKCS #10 request.
        usages: spec.usages of the CertificateSigningRequest.
    """
    return _client_rejection(usages) if signer == CLIENT_SIGNER else _kubelet_rejection(request, usages)


def _client_rejection(usages: Sequence[str]) -> str:
    """Why CLIENT_SIGNER does not sign a request with these usages; empty if it does."""
    unknown = [usage for usage in usages if usage not in (SIGNATURE, ENCIPHERMENT, CLIENT_AUTH)]
    if unknown:
        return f"invalid usage for client certificate: {unknown[0]}"
    return "" if CLIENT_AUTH in usages else f"missing required usage for client certificate: {CLIENT_AUTH}"


def _kubelet_rejection(request: x509.CertificateSigningRequest, usages: Sequence[str]) -> str:
    """Why KUBELET_CLIENT_SIGNER does not sign a request; empty if it does."""
    if _subject_values(request, NameOID.ORGANIZATION_NAME) != [certificates.NODES]:
        return "subject organization is not system:nodes"
    for name_type, title in _TITLES_OF_NAME_TYPES.items():
        if any(isinstance(name, name_type) for name in _alternative_names(request)):
            return f"{title} subjectAltNames are not allowed"
    common_names = _subject_values(request, NameOID.COMMON_NAME)
    if not common_names or not common_names[-1].startswith(certificates.NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    if set(usages) | {ENCIPHERMENT} != {SIGNATURE, ENCIPHERMENT, CLIENT_AUTH}:  # key encipherment is optional
        return f"usages did not match [{CLIENT_AUTH} {SIGNATURE} {ENCIPHERMENT}]"
    return ""


class RequestSigner:
    """Signs requests with the authority in a folder.

    Args:
        folder: where `ca.pem` is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sign(
        self, request: x509.CertificateSigningRequest, usages: Sequence[str], life_s: int | None, *, now_ns: int
    ) -> bytes:
        """The certificate (PEM) of a checked request. Blocks.

        Args:
            request: the parsed PKCS #10 request.
            usages: spec.usages of the CertificateSigningRequest.
            life_s: spec.expirationSeconds; None for a year. The certificate ends with the authority at the latest.
            now_ns: the wall clock, nanoseconds since the epoch.

        Raises:
            UsageError: the authority cannot be read, or, if it is missing, created.
            ValueError: the key of the request is of a kind that cannot be certified.
        """
        authority = certificates.signing_authority(self._folder, now_ns=now_ns)
        now = certificates.utc(now_ns)
        life = LIFE_MAX if life_s is None else max(LIFE_MIN, min(LIFE_MAX, timedelta(seconds=life_s)))
        end = now + (life if life < SHORT_LIFE else life - BACKDATE)
        builder = x509.CertificateBuilder(authority.certificate.subject, request.subject)
        builder = builder.public_key(_certifiable(request.public_key())).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - BACKDATE)
        builder = builder.not_valid_after(min(end, authority.certificate.not_valid_after_utc))
        if not {SIGNATURE, ENCIPHERMENT}.isdisjoint(usages):  # an extension without any usage forbids all
            builder = builder.add_extension(_key_usage(usages), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        if alternative := _alternative_names(request):
            builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
        return builder.sign(authority.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _certifiable(key: object) -> CertificatePublicKeyTypes:
    """The key, if certificates can have it. Raises ValueError."""
    if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        return key
    raise ValueError("the key of the request is of a kind that cannot be certified")


def _subject_values(request: x509.CertificateSigningRequest, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in request.subject.get_attributes_for_oid(oid)]


def _alternative_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """The DNS names, addresses (IP, email) and URIs that a request asks for."""
    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [name for name in names if type(name) in _TITLES_OF_NAME_TYPES]


def _key_usage(usages: Sequence[str]) -> x509.KeyUsage:
    """What the key of a signed request may be used for."""
    return x509.KeyUsage(
        digital_signature=SIGNATURE in usages,
        content_commitment=False,
        key_encipherment=ENCIPHERMENT in usages,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
