"""Admits writes of CertificateSigningRequests and ClusterTrustBundles: the requesting user, permissions on signers.

`cli.up` calls `register_requests` and `register_bundles`. Rules:

1. spec.username, uid, groups and extra are those of the user who creates the object.
2. The signer kubernetes.io/kube-apiserver-client signs no request for the group system:masters.
3. A write of the subresource `approval` needs the verb `approve` on the signer; one of `status` that changes conditions
   or certificate needs the verb `sign`. The permission is on `signers` of certificates.k8s.io with the signer's name
   (`example.com/web`), or with its domain (`example.com/*`).
4. Missing times of conditions are set.
5. A create or update of a ClusterTrustBundle of a signer needs the verb `attest` on that signer.

Source: kube-apiserver's admission plugins CertificateApproval, CertificateSigning, CertificateSubjectRestriction
and ClusterTrustBundleAttest.
"""

from collections.abc import Callable

from cryptography.x509.oid import NameOID

from podscaler.api.kinds.core import certificatesigningrequest, clustertrustbundle
from podscaler.api.kinds.core.certificatesigningrequest import APPROVAL
from podscaler.api.resource import api_errors
from podscaler.api.resource.resources import Object
from podscaler.base.clock import Clock, rfc3339
from podscaler.controlplane.auth.authorizer import Attributes, Authorizer
from podscaler.controlplane.credentials.request_signing import CLIENT_SIGNER
from podscaler.controlplane.registry import acting_user, users
from podscaler.controlplane.registry.objects import Objects

_RESOURCE = certificatesigningrequest.RESOURCE
_USER_FIELDS = ("username", "uid", "groups", "extra")


def register_requests(objects: Objects, authorizer: Authorizer, clock: Clock) -> None:
    """Register the admission of CertificateSigningRequests with `objects`."""
    objects.add_admission(_RESOURCE.key, _admit_request)
    objects.add_admission(f"{_RESOURCE.key}/{APPROVAL}", _signer_admission(authorizer, clock, "approve"))
    objects.add_admission(f"{_RESOURCE.key}/status", _signer_admission(authorizer, clock, "sign"))


def register_bundles(objects: Objects, authorizer: Authorizer) -> None:
    """Register the admission of ClusterTrustBundles with `objects`."""

    def admit_bundle(new: Object, old: Object | None) -> None:
        signer = clustertrustbundle.signer_of(new)
        if not signer or clustertrustbundle.validate(new, old):  # upstream checks valid bundles only
            return
        if not _may_use_signer(authorizer, "attest", signer):
            reason = f'user not permitted to attest for signerName "{signer}"'
            raise api_errors.forbidden(clustertrustbundle.RESOURCE, api_errors.name_at_admission(new), reason)

    objects.add_admission(clustertrustbundle.RESOURCE.key, admit_bundle)


def _admit_request(new: Object, old: Object | None) -> None:
    """The admission of creates (rules 1 and 2); updates pass. Raises StatusError 403."""
    if old is not None:
        return
    user, spec = acting_user.current(), new.setdefault("spec", {})
    for name in _USER_FIELDS:
        spec.pop(name, None)
    spec |= {"username": user.name, "groups": list(user.all_groups)}
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    if spec.get("signerName") == CLIENT_SIGNER and users.MASTERS in _organizations(spec.get("request") or ""):
        reason = f"use of {CLIENT_SIGNER} signer with system:masters group is not allowed"
        raise api_errors.forbidden(_RESOURCE, api_errors.name_at_admission(new), reason)


def _organizations(encoded_request: str) -> list[str]:
    """The groups (organizations) that `spec.request` names; empty if it cannot be parsed, which validation reports."""
    try:
        request = certificatesigningrequest.parse_request(encoded_request)
    except ValueError:
        return []
    attributes = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return [str(attribute.value) for attribute in attributes]


def _signer_admission(authorizer: Authorizer, clock: Clock, verb: str) -> Callable[[Object, Object | None], None]:
    """The admission function of a subresource whose changes need `verb` on the signer; it raises StatusError 403."""

    def admit_write(new: Object, old: Object | None) -> None:
        before, after = (old or {}).get("status") or {}, new.get("status") or {}
        is_changed = any(before.get(name) != after.get(name) for name in ("certificate", "conditions"))
        if old is None or (verb == "sign" and not is_changed):
            return
        signer = (old.get("spec") or {}).get("signerName", "")
        if not _may_use_signer(authorizer, verb, signer):
            reason = f'user not permitted to {verb} requests with signerName "{signer}"'
            raise api_errors.forbidden(_RESOURCE, old["metadata"]["name"], reason)
        _set_times(after.get("conditions") or [], before.get("conditions") or [], rfc3339(clock.now_ns()))

    return admit_write


def _may_use_signer(authorizer: Authorizer, verb: str, signer: str) -> bool:
    """Whether the acting user has `verb` on the signer or on all signers of its domain."""
    user, domain = acting_user.current(), signer.partition("/")[0]
    requests = (
        Attributes(verb, group=_RESOURCE.group, resource="signers", name=name) for name in (signer, f"{domain}/*")
    )
    return any(authorizer.decide(user, request).allowed for request in requests)


def _set_times(conditions: list[Object], stored_conditions: list[Object], now: str) -> None:
    """Set the missing times of conditions, in place; with the type and status of a stored one its transition time."""
    stored_times = {
        (stored.get("type"), stored.get("status")): stored.get("lastTransitionTime") for stored in stored_conditions
    }
    for condition in conditions:
        stored_time = stored_times.get((condition.get("type"), condition.get("status")))
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        condition["lastTransitionTime"] = condition.get("lastTransitionTime") or stored_time or now
