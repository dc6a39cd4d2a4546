"""Resource definition of CertificateSigningRequest (certificates.k8s.io/v1): validation, approval, and table.

RESOURCE, at the end, registers the functions above it as hooks, which `api.resource.resources` explains;
`api.kinds.catalog` lists it for the API server. `podscaler.controlplane.admission.certificate_admission` fills in the
user and the times of conditions; `podscaler.controlplane.controllers.cluster.certificate_signing` signs. Requests are
parsed with the package cryptography, which is imported when the first one is validated. A new field needs regenerated
type facts (CONTRIBUTING.md) and its validation here; a new column, a cell in `_cells`.

Source: kube-apiserver's strategy, validation and messages in Kubernetes v1.37. Differs: the messages about ASN.1 that
cannot be parsed, and the value in the message about a changed condition.
"""

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from podscaler.api.machinery import printing
from podscaler.api.machinery.field import FieldError, forbidden, invalid, not_supported, required
from podscaler.api.resource import checks, semantics, signers, tables
from podscaler.api.resource.resources import Column, Object, Resource, Strategy, Version

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

APPROVAL: Final = "approval"
"""The name of the subresource. The next three are types of conditions."""
APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"
_LIFETIME_MIN_S: Final = 600
_USAGES: Final = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)
_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_CONDITION_STATUSES: Final = ("False", "True", "Unknown")
_CONDITIONS_PATH: Final = "status.conditions"
_BOTH_DECISIONS: Final = '{conditions[{"type": "Approved"}], conditions[{"type": "Denied"}]}'
_ONE_DECISION_MESSAGE: Final = (
    'must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`'
)


def parse_request(pem_base64: str) -> "CertificateSigningRequest":
    """The PKCS #10 request of spec.request (base64 of PEM): its subject and extensions can be read, its key is known.

    Raises ValueError with a message in kube-apiserver's words, also for a signature that is not that of the key.
    """
    from cryptography import exceptions, x509

    try:
        pem = base64.b64decode(pem_base64, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
    if b"-----BEGIN CERTIFICATE REQUEST-----" not in pem:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    parse_errors = (ValueError, TypeError, exceptions.UnsupportedAlgorithm, x509.InvalidVersion)
    try:
        request = x509.load_pem_x509_csr(pem)
        is_signature_valid = request.is_signature_valid
        _ = (request.subject, request.extensions)  # raises if they cannot be parsed
    except (*parse_errors, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise ValueError("x509: malformed certificate request") from None
    if not is_signature_valid:
        raise ValueError("x509: signature verification failed")
    return request


def condition_types(request: Object) -> list[str]:
    """The types of the conditions of a CertificateSigningRequest."""
    return [condition.get("type", "") for condition in (request.get("status") or {}).get("conditions") or []]


def validate(new: Object, old: Object | None) -> list[FieldError]:
    """The field errors of a new or changed CertificateSigningRequest; its spec never changes."""
    return _write_errors(new, old)


def _validate_status(new: Object, old: Object | None) -> list[FieldError]:
    return _write_errors(new, old, sets_certificate=True)


def _validate_approval(new: Object, old: Object | None) -> list[FieldError]:
    return _write_errors(new, old, sets_approval=True)


def _write_errors(
    new: Object, old: Object | None, *, sets_certificate: bool = False, sets_approval: bool = False
) -> list[FieldError]:
    """Field errors of a new or changed request.

    Args:
        old: the stored request; None for a new one.
        sets_certificate: whether the write is to the subresource `status`, which may set the certificate.
        sets_approval: whether the write is to the subresource `approval`, which may approve and deny.
    """
    errors = _spec_errors(new.get("spec") or {}) + _condition_errors(new) + _certificate_errors(new)
    if old is None:
        return errors
    for condition_type in (APPROVED, DENIED, FAILED):
        if len(_conditions_of_type(new, condition_type)) < len(_conditions_of_type(old, condition_type)):
            errors.append(forbidden(_CONDITIONS_PATH, f'updates may not remove a condition of type "{condition_type}"'))
    if not sets_approval:
        errors += [
            error for condition_type in (APPROVED, DENIED) for error in _approval_errors(new, old, condition_type)
        ]
    old_certificate = (old.get("status") or {}).get("certificate")
    new_certificate = (new.get("status") or {}).get("certificate")
    if old_certificate != new_certificate and not sets_certificate:
        errors.append(forbidden("status.certificate", "updates may not set certificate content"))
    elif old_certificate != new_certificate and old_certificate:
        errors.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return errors


def _spec_errors(spec: Object) -> list[FieldError]:
    """Errors of the spec: the request, its usages, its signer, its lifetime."""
    usages, lifetime_s = spec.get("usages") or [], spec.get("expirationSeconds")
    errors = _request_errors(spec.get("request") or "") + ([] if usages else [required("spec.usages")])
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(not_supported(f"spec.usages[{index}]", usage, _USAGES))
    earlier_usages: set[str] = set()
    for index, usage in enumerate(usages):
        errors += checks.not_repeated(usage, f"spec.usages[{index}]", earlier_usages)
    errors += _signer_errors(spec.get("signerName") or "", "spec.signerName")
    if lifetime_s is not None and lifetime_s < _LIFETIME_MIN_S:
        message = "may not specify a duration less than 600 seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", lifetime_s, message))
    return errors


def _request_errors(pem_base64: str) -> list[FieldError]:
    """The error of a request (base64 of PEM) that cannot be parsed or has an invalid signature."""
    try:
        parse_request(pem_base64)
    except ValueError as error:
        return [invalid("spec.request", pem_base64, str(error))]
    return []


def _signer_errors(signer: str, path: str) -> list[FieldError]:
    """Field errors of the name of the signer, which is `DOMAIN/PATH` and not the legacy one."""
    if signer == _LEGACY_SIGNER:
        return [invalid(path, signer, "the legacy signerName is not allowed via this API version")]
    return signers.signer_name_errors(signer, path)


def _condition_errors(request: Object) -> list[FieldError]:
    """Field errors of the conditions; a request must not be both approved and denied."""
    errors: list[FieldError] = []
    earlier_types: set[str] = set()
    for index, condition in enumerate((request.get("status") or {}).get("conditions") or []):
        condition_type, status = condition.get("type", ""), condition.get("status", "")
        path = f"{_CONDITIONS_PATH}[{index}]"
        allowed = ("True",) if condition_type in (APPROVED, DENIED, FAILED) else _CONDITION_STATUSES
        errors += checks.present(condition_type, f"{path}.type")
        errors += checks.required_one_of(status, f"{path}.status", allowed)
        errors += checks.not_repeated(condition_type, f"{path}.type", earlier_types)
    if {APPROVED, DENIED} <= earlier_types:
        errors.append(invalid(_CONDITIONS_PATH, _BOTH_DECISIONS, _ONE_DECISION_MESSAGE))
    return errors


def _certificate_errors(request: Object) -> list[FieldError]:
    """Field errors of the issued certificate, which is PEM in base64."""
    pem_base64 = (request.get("status") or {}).get("certificate")
    if not pem_base64:
        return []
    from cryptography import x509

    try:
        x509.load_pem_x509_certificates(base64.b64decode(pem_base64))
    except ValueError:
        message = "must contain at least one CERTIFICATE PEM block"
        return [invalid("status.certificate", "<certificate data>", message)]
    return []


def _conditions_of_type(request: Object, condition_type: str) -> list[Object]:
    """The conditions of a request with that type, in order."""
    return [
        condition
        for condition in (request.get("status") or {}).get("conditions") or []
        if condition.get("type") == condition_type
    ]


def _approval_errors(new: Object, old: Object, condition_type: str) -> list[FieldError]:
    """Field errors of an update that adds or changes conditions of a type, outside of the subresource `approval`."""
    old_conditions, new_conditions = _conditions_of_type(old, condition_type), _conditions_of_type(new, condition_type)
    if len(new_conditions) > len(old_conditions):
        return [forbidden(_CONDITIONS_PATH, f'updates may not add a condition of type "{condition_type}"')]
    if len(new_conditions) == len(old_conditions) and not semantics.same(old_conditions, new_conditions):
        return [forbidden(_CONDITIONS_PATH, f'updates may not modify a condition of type "{condition_type}"')]
    return []


def _prepare_create(new: Object) -> None:
    new["status"] = {}


def _prepare_update(new: Object, old: Object) -> None:
    """Keeps all but the metadata, in place."""
    new["spec"], new["status"] = old["spec"], old.get("status") or {}


def _prepare_status_update(new: Object, old: Object) -> None:
    """Keeps the spec, and the conditions of approval unless their number changes (a field error), in place."""
    new["spec"] = old["spec"]
    for condition_type in (APPROVED, DENIED):
        old_conditions = _conditions_of_type(old, condition_type)
        new_conditions = _conditions_of_type(new, condition_type)
        if len(old_conditions) == len(new_conditions):
            for condition, old_condition in zip(new_conditions, old_conditions, strict=True):
                condition.clear()
                condition.update(old_condition)


def _prepare_approval(new: Object, old: Object) -> None:
    """Keeps everything of the stored request but the conditions, in place."""
    conditions = (new.get("status") or {}).get("conditions")
    new["spec"] = old["spec"]
    new["status"] = {**(old.get("status") or {}), "conditions": conditions}


def _selectable_fields(request: Object) -> dict[str, str]:
    """Field selector -> its value in this request."""
    return {"spec.signerName": (request.get("spec") or {}).get("signerName", "")}


def _cells(request: Object, _now_ns: int) -> list[Any]:
    """The cells of a table row: signer, user, lifetime, and the state, such as `Pending` or `Approved,Issued`."""
    spec, types = request.get("spec") or {}, condition_types(request)
    lifetime_s = spec.get("expirationSeconds")
    decision_text = next((decision for decision in (DENIED, APPROVED) if decision in types), "Pending")
    failed_text = ",Failed" if FAILED in types else ""
    issued_text = ",Issued" if (request.get("status") or {}).get("certificate") else ""
    duration = printing.NONE if lifetime_s is None else printing.elapsed(lifetime_s)
    return [
        spec.get("signerName") or printing.NONE,
        spec.get("username", ""),
        duration,
        f"{decision_text}{failed_text}{issued_text}",
    ]


RESOURCE = Resource(
    group="certificates.k8s.io",
    plural="certificatesigningrequests",
    kind="CertificateSigningRequest",
    versions=(Version("v1", "certificates/v1.CertificateSigningRequest"),),
    namespaced=False,
    short_names=("csr",),
    has_status=True,
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status_update=_prepare_status_update,
        prepare_subresource_update={APPROVAL: _prepare_approval},
        validate=validate,
        validate_status=_validate_status,
        validate_subresource_update={APPROVAL: _validate_approval},
    ),
    fields=_selectable_fields,
    printer=tables.named(
        "certificate signing request",
        tables.AGE,
        Column("SignerName", description="Who is asked to sign."),
        Column("Requestor", description="The user who created it."),
        Column("RequestedDuration", description="How long the certificate is asked to be valid."),
        Column("Condition", description="Whether it is approved, denied, failed or issued."),
        cells=_cells,
        note="",
    ),
)
