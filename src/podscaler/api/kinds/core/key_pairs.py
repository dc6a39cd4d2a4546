"""Whether a certificate and a private key, as PEM, make a pair that a TLS server can use.

Called by the record of Secret, whose writer is warned where they do not.

Source: the words of Go's crypto/tls, which upstream hands on.
"""

import re

_BLOCK = re.compile(rb"(?ms)^-----BEGIN ([A-Z0-9 ]+)-----$.*?^-----END \1-----[ \t]*$")
_CERTIFICATE = "CERTIFICATE"
_SWITCHED = ", but did find a private key; PEM inputs may have been switched"


def fault(certificate: bytes, key: bytes) -> str:
    """The message about an invalid pair, empty for a valid one and for PEM blocks that cannot be parsed."""
    found = _certificate_fault(certificate) or _key_fault(key)
    return found or _mismatch(certificate, key)


def _types(data: bytes) -> list[str]:
    return [name.decode() for name in _BLOCK.findall(data)]


def _certificate_fault(certificate: bytes) -> str:
    types = _types(certificate)
    if not types:
        return "tls: failed to find any PEM data in certificate input"
    if _CERTIFICATE in types:
        return ""
    if len(types) == 1 and types[0].endswith("PRIVATE KEY"):
        return f"tls: failed to find certificate PEM data in certificate input{_SWITCHED}"
    return f'tls: failed to find "{_CERTIFICATE}" PEM block in certificate input{_skipped(types)}'


def _key_fault(key: bytes) -> str:
    types = _types(key)
    if not types:
        return "tls: failed to find any PEM data in key input"
    if any(each.endswith("PRIVATE KEY") for each in types):
        return ""
    if types == [_CERTIFICATE]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return f'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input{_skipped(types)}'


def _skipped(types: list[str]) -> str:
    return f" after skipping PEM blocks of the following types: [{' '.join(types)}]"


def _mismatch(certificate: bytes, key: bytes) -> str:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        public = load_pem_x509_certificate(certificate).public_key()
        own = load_pem_private_key(key, None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return ""
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if type(public) is not type(own):
        return "tls: private key type does not match public key type"
    return "" if public.public_bytes(*form) == own.public_bytes(*form) else "tls: private key does not match public key"
