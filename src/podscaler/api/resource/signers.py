"""Validates names of signers (`example.com/signer`) and of trust bundles (`example.com:signer:bundle`).

Called by the validation of CertificateSigningRequests, ClusterTrustBundles and projected volumes.

Source: kube-apiserver's validation of signer names and of the names of ClusterTrustBundles in Kubernetes v1.37.
"""

from typing import Final

from podscaler.api.machinery import names
from podscaler.api.machinery.field import FieldError, invalid, required, too_long
from podscaler.api.resource import checks
from podscaler.api.text import quoting

_FORM: Final = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_DOMAIN_FORM: Final = "should be a domain with at least two segments separated by dots"
_DOMAIN_MAX_BYTES: Final = 253
_SIGNER_MAX_BYTES: Final = 571


def signer_name_errors(signer: str, path: str) -> list[FieldError]:
    """The field errors of a signer's name.

    Args:
        path: the path of the field.
    """
    if not signer:
        return [required(path)]
    domain_and_path = signer.split("/")
    if len(domain_and_path) != 2:
        return [invalid(path, signer, _FORM)]
    domain, signer_path = domain_and_path
    errors = [too_long(path, _DOMAIN_MAX_BYTES)] if len(domain.encode()) > _DOMAIN_MAX_BYTES else []
    errors += _first_label_errors(domain, path, names.dns_label_errors)
    errors += checks.holds("." in domain, path, domain, _DOMAIN_FORM)
    errors += _first_label_errors(signer_path, path, names.dns_subdomain_errors)
    return errors + ([too_long(path, _SIGNER_MAX_BYTES)] if len(signer.encode()) > _SIGNER_MAX_BYTES else [])


def bundle_name_messages(name: str, signer: str) -> list[str]:
    """The messages about the name of a ClusterTrustBundle; empty for a valid one.

    Args:
        name: the name of the bundle.
        signer: the name of its signer, with which the name must begin; empty if it has none.
    """
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return names.dns_subdomain_errors(name)
    prefix = f"{signer.replace('/', ':')}:"
    if not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return names.dns_subdomain_errors(name.removeprefix(prefix))


def _first_label_errors(dotted: str, path: str, rule: checks.Rule) -> list[FieldError]:
    """The errors of the first label of a dotted name that is malformed."""
    for label in dotted.split("."):
        if messages := rule(label):
            return [
                invalid(path, dotted, f"validating label {quoting.quoted(label)}: {message}") for message in messages
            ]
    return []
