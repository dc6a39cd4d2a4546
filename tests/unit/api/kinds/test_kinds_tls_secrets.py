"""The warning about the certificate and key of a TLS Secret."""

import base64
import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from podscaler.api.kinds import catalog
from podscaler.api.kinds.core import secret

_NAME = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
_DAY = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_FORM = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _certificate(key: ec.EllipticCurvePrivateKey) -> bytes:
    builder = x509.CertificateBuilder().subject_name(_NAME).issuer_name(_NAME).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(_DAY).not_valid_after(_DAY)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


_KEY, _OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
_CERT_PEM, _KEY_PEM, _OTHER_PEM = _certificate(_KEY), _KEY.private_bytes(*_FORM), _OTHER.private_bytes(*_FORM)
_ED_PEM = ed25519.Ed25519PrivateKey.generate().private_bytes(*_FORM)
_STRANGE = b"-----BEGIN THING-----\nYQ==\n-----END THING-----\n"
_SKIPPED = "input after skipping PEM blocks of the following types: [THING]"


@pytest.mark.parametrize(
    ("certificate", "key", "error"),
    [
        pytest.param(_CERT_PEM, _KEY_PEM, "", id="a pair"),
        pytest.param(b"x", b"y", "tls: failed to find any PEM data in certificate input", id="no PEM"),
        pytest.param(_CERT_PEM, b"y", "tls: failed to find any PEM data in key input", id="no PEM for a key"),
        pytest.param(
            _KEY_PEM,
            _CERT_PEM,
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched",
            id="switched",
        ),
        pytest.param(
            _STRANGE, _KEY_PEM, f'tls: failed to find "CERTIFICATE" PEM block in certificate {_SKIPPED}', id="strange"
        ),
        pytest.param(
            _CERT_PEM,
            _CERT_PEM,
            "tls: found a certificate rather than a key in the PEM for the private key",
            id="twice the certificate",
        ),
        pytest.param(
            _CERT_PEM,
            _STRANGE,
            f'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key {_SKIPPED}',
            id="a strange key",
        ),
        pytest.param(_CERT_PEM, _OTHER_PEM, "tls: private key does not match public key", id="another's key"),
        pytest.param(_CERT_PEM, _ED_PEM, "tls: private key type does not match public key type", id="another type"),
    ],
)
def test_key_pair_errors(certificate: bytes, key: bytes, error: str) -> None:
    """The error is that of crypto/tls for such a pair."""
    assert secret.key_pair_error(certificate, key) == error


@pytest.mark.parametrize(
    ("kind", "warnings"),
    [
        pytest.param("kubernetes.io/tls", ["tls: failed to find any PEM data in certificate input"], id="tls"),
        pytest.param("Opaque", [], id="any other"),
    ],
)
def test_writers_of_secrets_are_warned(kind: str, warnings: list[str]) -> None:
    """A TLS Secret that no server can use is stored, with a warning."""
    data = {name: base64.b64encode(b"x").decode() for name in ("tls.crt", "tls.key")}
    assert catalog.get("secrets").strategy.warnings({"type": kind, "data": data}, None) == warnings
