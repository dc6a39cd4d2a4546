"""Creates and loads the private key that signs service account tokens (JSON Web Tokens), in a file with mode 0600.

`cli.up` calls `ensure` in a thread; `auth.account_tokens` signs and verifies with the key. Another algorithm concerns
`ALGORITHM`, `generate`, `public_jwk` and the check in `ensure`.

Source: RFC 7517, RFC 7518 (ES256), RFC 7638 for the key's id.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files

ALGORITHM = "ES256"
"""The JWT algorithm: ECDSA on the curve P-256 with SHA-256."""
_COORDINATE_BYTES = 32


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key on the curve P-256."""

    private: ec.EllipticCurvePrivateKey

    @property
    def public_jwk(self) -> dict[str, str]:
        """The public key as a JSON Web Key; `kid` is its RFC 7638 thumbprint."""
        numbers = self.private.public_key().public_numbers()
        point = {"crv": "P-256", "kty": "EC", "x": _coordinate(numbers.x), "y": _coordinate(numbers.y)}
        digest = hashlib.sha256(json.dumps(point, sort_keys=True, separators=(",", ":")).encode()).digest()
        return {"use": "sig", "kty": "EC", "kid": _url_safe(digest), "crv": "P-256", "alg": ALGORITHM} | point


def generate() -> SigningKey:
    """A new random key."""
    return SigningKey(ec.generate_private_key(ec.SECP256R1()))


def ensure(path: Path) -> SigningKey:
    """The key in the file `path` (mode 0600), which is created if it is missing. Blocks.

    Raises UsageError if the file cannot be read or written, or holds no such key.
    """
    content = secret_files.read(path)
    if content is None:
        created = generate()
        secret_files.write(path, _pem(created))
        return created
    try:
        key = serialization.load_pem_private_key(content, None)
    except ValueError as error:
        raise UsageError(f"{path} holds no key: remove it to have a new one made") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise UsageError(f"{path} holds a key of another kind: remove it to have a new one made")
    return SigningKey(key)


def _pem(key: SigningKey) -> bytes:
    """The key as an unencrypted PEM file (PKCS #8)."""
    return key.private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _coordinate(number: int) -> str:
    return _url_safe(number.to_bytes(_COORDINATE_BYTES, "big"))


def _url_safe(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
