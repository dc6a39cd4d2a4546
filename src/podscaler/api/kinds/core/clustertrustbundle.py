"""Resource definition of ClusterTrustBundle (certificates.k8s.io/v1): certificates of authorities that pods can mount.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. `podscaler.controlplane.admission.certificate_admission` checks who may
write the bundle of a signer, and `podscaler.controlplane.kubelet.volumes.volume_files` writes bundles into projected
volumes. Certificates are parsed with the package cryptography, which is imported when the first one is validated. A new
requirement on certificates goes into `_block_message`.

Source: kube-apiserver's strategy, validation and messages in Kubernetes v1.37; RFC 7468 (PEM). Differs: a block of PEM
that contains lines with five dashes is left out, while Go may find a block within it.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, invalid, too_long
from podscaler.api.resource import checks, signers, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

_CERTIFICATE: Final = "CERTIFICATE"
_BUNDLE_MAX_BYTES: Final = 1024 * 1024
_BUNDLE_PATH: Final = "spec.trustBundle"
_SIGNER_PATH: Final = "spec.signerName"
_BEGIN: Final = "-----BEGIN "
_DASHES: Final = "-----"


class PEMBlock(NamedTuple):
    """A block of a PEM text: `CERTIFICATE` and the like, whether it has headers, and the decoded bytes."""

    type: str
    has_headers: bool
    data: bytes


def pem_blocks(pem_text: str) -> Iterator[PEMBlock]:
    """Yields the blocks of a PEM text; text between blocks, and blocks that cannot be decoded, are skipped."""
    block_type: str | None = None
    lines: list[str] = []
    for line in (raw_line.rstrip(" \t\r") for raw_line in pem_text.split("\n")):
        if line.startswith(_BEGIN) and line.endswith(_DASHES):
            block_type, lines = line[len(_BEGIN) : -len(_DASHES)], []
        elif line.startswith(_DASHES):
            if block_type is not None and line == f"-----END {block_type}-----":
                yield from _decode_block(block_type, lines)
            block_type = None
        else:
            lines.append(line)


def signer_of(bundle: Object) -> str:
    """The name of the bundle's signer, empty if it has none."""
    return str((bundle.get("spec") or {}).get("signerName", ""))


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a new or changed ClusterTrustBundle; its signer never changes."""
    signer, pem_text = signer_of(new), (new.get("spec") or {}).get("trustBundle", "")
    name = new["metadata"].get("name", "")
    errors = [invalid("metadata.name", name, message) for message in signers.bundle_name_messages(name, signer)]
    errors += signers.signer_name_errors(signer, _SIGNER_PATH) if signer else []
    if old is None or pem_text != (old.get("spec") or {}).get("trustBundle", ""):
        errors += _certificate_errors(pem_text)
    is_unchanged = old is None or signer == signer_of(old)
    return errors + checks.holds(is_unchanged, _SIGNER_PATH, signer, checks.IMMUTABLE)


def _decode_block(block_type: str, lines: list[str]) -> Iterator[PEMBlock]:
    """Yields the block of these lines, headers (lines with a colon) first; nothing if they are no base64."""
    header_count = next((index for index, line in enumerate(lines) if ":" not in line), len(lines))
    encoded = "".join(lines[header_count:]).replace(" ", "").replace("\t", "")
    try:
        yield PEMBlock(block_type, header_count > 0, base64.b64decode(encoded, validate=True))
    except binascii.Error:
        return


def _certificate_errors(pem_text: str) -> list[FieldError]:
    """Errors of the bundle's PEM blocks: their form, and certificates that are there twice."""
    if len(pem_text.encode()) > _BUNDLE_MAX_BYTES:
        return [too_long(_BUNDLE_PATH, _BUNDLE_MAX_BYTES)]
    messages: list[str] = []
    indexes_by_certificate: dict[bytes, list[int]] = {}
    for index, block in enumerate(pem_blocks(pem_text)):
        if message := _block_message(block):
            messages.append(f"entry {index} {message}")
        else:
            indexes_by_certificate.setdefault(block.data, []).append(index)
    if not messages and not indexes_by_certificate:
        messages.append("at least one trust anchor must be provided")
    elif not messages:
        repeated_indexes = [
            " ".join(map(str, indexes)) for indexes in indexes_by_certificate.values() if len(indexes) > 1
        ]
        messages += [f"duplicate trust anchor (indices [{indexes}])" for indexes in repeated_indexes]
    return [invalid(_BUNDLE_PATH, "<value omitted>", message) for message in messages]


def _block_message(block: PEMBlock) -> str:
    """The message about a block that is no certificate of an authority; empty if it is one."""
    from cryptography import x509

    if block.type != _CERTIFICATE:
        return f"has bad block type: {block.type}"
    if block.has_headers:
        return "has PEM block headers"
    try:
        extensions = x509.load_der_x509_certificate(block.data).extensions
    except (ValueError, x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType):
        return "does not parse as X.509"
    basic_constraints = next(
        (extension.value for extension in extensions if isinstance(extension.value, x509.BasicConstraints)), None
    )
    return "" if basic_constraints is not None and basic_constraints.ca else "does not have the CA bit set"


def _cells(bundle: Object, _now_ns: int) -> list[Any]:
    return [signer_of(bundle) or printing.NONE]


RESOURCE = Resource(
    group="certificates.k8s.io",
    plural="clustertrustbundles",
    kind="ClusterTrustBundle",
    versions=(Version("v1", "certificates/v1.ClusterTrustBundle"),),
    namespaced=False,
    strategy=Strategy(validate=validate),
    fields=lambda bundle: {"spec.signerName": signer_of(bundle)},
    printer=tables.without_age(
        "cluster trust bundle",
        Column("SignerName", description="The signer whose authorities it has."),
        cells=_cells,
        note="",
    ),
)
