"""Resource definition of Secret (core/v1): defaults, validation, and the warning about a certificate of another key.

SECRET, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. A new type of Secret with required keys: add it to `_REQUIRED_KEYS`.

Source: recorded responses (tests/conformance/golden); the API reference of core/v1; messages of Go's crypto/tls, which
kube-apiserver returns as the warning.
"""

import base64
import re

from podscaler.api.kinds.core import configmap
from podscaler.api.machinery.field import FieldError, required, too_long
from podscaler.api.resource import checks, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_TLS = "kubernetes.io/tls"
_REQUIRED_KEYS = {
    _TLS: ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
"""Secret type -> the keys that `data` must have."""
_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105  the name of a type, not a secret
_BASIC_AUTH = "kubernetes.io/basic-auth"
_ACCOUNT_NAME_ANNOTATION = "kubernetes.io/service-account.name"

_PEM_BLOCK = re.compile(rb"(?ms)^-----BEGIN ([A-Z0-9 ]+)-----$.*?^-----END \1-----[ \t]*$")
"""A block from `-----BEGIN CERTIFICATE-----` to `-----END CERTIFICATE-----`; group 1 is its type."""
_CERTIFICATE = "CERTIFICATE"
_SWITCHED_INPUTS_HINT = ", but did find a private key; PEM inputs may have been switched"


def set_defaults(secret: Object) -> None:
    """API defaults, in place: the type Opaque; `stringData` is encoded and replaces values of `data`."""
    if not secret.get("type"):
        secret["type"] = "Opaque"
    if string_data := secret.pop("stringData", None):
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in string_data.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a Secret to be stored: keys, size, keys that its type requires, immutability."""
    data = new.get("data") or {}
    errors = configmap.key_errors(data, "data")
    if sum(map(configmap.decoded_size_bytes, data.values())) > configmap.MAX_BYTES:
        errors.append(too_long("data", configmap.MAX_BYTES))
    secret_type = new.get("type", "")
    errors += [required(f"data[{key}]") for key in _REQUIRED_KEYS.get(secret_type, ()) if key not in data]
    if secret_type == _BASIC_AUTH and not {"username", "password"} & set(data):
        errors += [required("data[username]"), required("data[password]")]
    if secret_type == _ACCOUNT_TOKEN and not (new["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME_ANNOTATION):
        errors.append(required(f"metadata.annotations[{_ACCOUNT_NAME_ANNOTATION}]"))
    errors += [] if old is None else checks.unchanged(secret_type, old.get("type", ""), "type")
    return errors + configmap.immutable_errors(new, old, "data")


def _warnings(new: Object, _old: Object | None) -> list[str]:
    """The warning about a TLS Secret whose certificate and key do not fit each other."""
    if new.get("type") != _TLS:
        return []
    data = new.get("data") or {}
    # decoding has checked the base64
    certificate, key = (base64.b64decode(data.get(data_key) or "") for data_key in _REQUIRED_KEYS[_TLS])
    message = key_pair_error(certificate, key)
    return [message] if message else []


def key_pair_error(certificate: bytes, key: bytes) -> str:
    """The message of Go's crypto/tls about a certificate that does not fit a private key; both are PEM.

    Empty for a valid pair, and for PEM blocks that cannot be parsed.
    """
    error = _certificate_error(_pem_types(certificate)) or _key_error(_pem_types(key))
    return error or _mismatch_error(certificate, key)


def _pem_types(pem: bytes) -> list[str]:
    """The types of the PEM blocks in `pem`: `CERTIFICATE`, `RSA PRIVATE KEY`, ..."""
    return [block_type.decode() for block_type in _PEM_BLOCK.findall(pem)]


def _certificate_error(block_types: list[str]) -> str:
    """Go's message about PEM blocks of these types that should be a certificate; empty if one is."""
    if not block_types:
        return "tls: failed to find any PEM data in certificate input"
    if _CERTIFICATE in block_types:
        return ""
    if len(block_types) == 1 and block_types[0].endswith("PRIVATE KEY"):
        return f"tls: failed to find certificate PEM data in certificate input{_SWITCHED_INPUTS_HINT}"
    return f'tls: failed to find "{_CERTIFICATE}" PEM block in certificate input{_skipped_types_text(block_types)}'


def _key_error(block_types: list[str]) -> str:
    """Go's message about PEM blocks of these types that should be a private key; empty if one is."""
    if not block_types:
        return "tls: failed to find any PEM data in key input"
    if any(block_type.endswith("PRIVATE KEY") for block_type in block_types):
        return ""
    if block_types == [_CERTIFICATE]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    problem = 'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input'
    return problem + _skipped_types_text(block_types)


def _skipped_types_text(block_types: list[str]) -> str:
    return f" after skipping PEM blocks of the following types: [{' '.join(block_types)}]"


def _mismatch_error(certificate: bytes, key: bytes) -> str:
    """Go's message if the key is not that of the certificate; empty if it is, or if one cannot be read."""
    # imported late: only TLS Secrets need it
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        certified_key = load_pem_x509_certificate(certificate).public_key()
        public_key = load_pem_private_key(key, None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return ""
    encoding_and_format = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if type(certified_key) is not type(public_key):
        return "tls: private key type does not match public key type"
    is_same = certified_key.public_bytes(*encoding_and_format) == public_key.public_bytes(*encoding_and_format)
    return "" if is_same else "tls: private key does not match public key"


SECRET = Resource(
    group="",
    plural="secrets",
    kind="Secret",
    versions=(Version("v1", "core/v1.Secret", default=set_defaults),),
    fields=lambda secret: {"type": secret.get("type", "")},
    strategy=Strategy(validate=validate, warnings=_warnings),
    printer=tables.named(
        "secret",
        Column("Type", description="What the secret is for."),
        configmap.DATA_COLUMN,
        cells=lambda secret, _now_ns: [secret.get("type", ""), len(secret.get("data") or {})],
    ),
)
