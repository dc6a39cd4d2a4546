"""CertificateSigningRequests: who may approve and sign, what the built-in authority signs, and when objects go."""

import asyncio
import base64
import ipaddress
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from podscaler.api.kinds import catalog
from podscaler.api.kinds.core import certificatesigningrequest
from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import StatusError
from podscaler.controlplane.admission import certificate_admission
from podscaler.controlplane.auth.authorizer import Authorizer
from podscaler.controlplane.auth.policy_index import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PolicyIndex
from podscaler.controlplane.controllers.cluster.certificate_signing import (
    FINISHED_TTL_S,
    PENDING_TTL_S,
    CertificateSigning,
)
from podscaler.controlplane.controllers.framework.control_loop import ControlLoop
from podscaler.controlplane.credentials import certificates, request_signing
from podscaler.controlplane.credentials.request_signing import CLIENT_SIGNER, KUBELET_CLIENT_SIGNER, RequestSigner
from podscaler.controlplane.registry import acting_user
from podscaler.controlplane.registry.objects import Objects
from podscaler.controlplane.registry.users import User
from podscaler.controlplane.storage import entries
from podscaler.controlplane.storage.options import UpdateOptions
from podscaler.testing import VirtualClock
from podscaler.testing.registry import open_registry

Object = dict[str, Any]
KEY = "certificatesigningrequests.certificates.k8s.io"
NODE = ("system:node:a", "system:nodes")
NODE_USAGES = ["client auth", "digital signature"]
RBAC = "rbac.authorization.k8s.io"


def request(name: str, *groups: str, names: tuple[x509.GeneralName, ...] = ()) -> x509.CertificateSigningRequest:
    """A request for a user."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder(subject)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())


def signing_request(found: x509.CertificateSigningRequest, *usages: str, signer: str = CLIENT_SIGNER) -> Object:
    """The object with a request."""
    pem = base64.b64encode(found.public_bytes(serialization.Encoding.PEM)).decode()
    return {"metadata": {"name": "r"}, "spec": {"request": pem, "signerName": signer, "usages": list(usages)}}


@pytest.mark.parametrize(
    ("signer", "asked", "usages", "why"),
    [
        pytest.param(CLIENT_SIGNER, request("ann"), ["client auth"], "", id="a client"),
        pytest.param(
            CLIENT_SIGNER,
            request("ann"),
            ["client auth", "server auth"],
            "invalid usage for client certificate: server auth",
            id="a client that wants to serve",
        ),
        pytest.param(
            CLIENT_SIGNER,
            request("ann"),
            ["digital signature"],
            "missing required usage for client certificate: client auth",
            id="a client without its usage",
        ),
        pytest.param(KUBELET_CLIENT_SIGNER, request(*NODE), NODE_USAGES, "", id="a kubelet"),
        pytest.param(
            KUBELET_CLIENT_SIGNER, request(*NODE), [*NODE_USAGES, "key encipherment"], "", id="a kubelet with RSA"
        ),
        pytest.param(
            KUBELET_CLIENT_SIGNER,
            request("system:node:a", "system:nodes", "more"),
            NODE_USAGES,
            "subject organization is not system:nodes",
            id="a kubelet of a further group",
        ),
        pytest.param(
            KUBELET_CLIENT_SIGNER,
            request("ann", "system:nodes"),
            NODE_USAGES,
            "subject common name does not begin with system:node:",
            id="a user as a kubelet",
        ),
        pytest.param(
            KUBELET_CLIENT_SIGNER,
            request(*NODE),
            ["client auth"],
            "usages did not match [client auth digital signature key encipherment]",
            id="a kubelet that does not sign",
        ),
        pytest.param(
            KUBELET_CLIENT_SIGNER,
            request(*NODE, names=(x509.DNSName("a"),)),
            NODE_USAGES,
            "DNS subjectAltNames are not allowed",
            id="a kubelet with a DNS name",
        ),
        pytest.param(
            KUBELET_CLIENT_SIGNER,
            request(*NODE, names=(x509.IPAddress(ipaddress.ip_address("127.0.0.1")),)),
            NODE_USAGES,
            "IP subjectAltNames are not allowed",
            id="a kubelet with an address",
        ),
        pytest.param(
            KUBELET_CLIENT_SIGNER,
            request(*NODE, names=(x509.UniformResourceIdentifier("http://a"),)),
            NODE_USAGES,
            "URI subjectAltNames are not allowed",
            id="a kubelet with a URI",
        ),
    ],
)
def test_what_signers_sign(signer: str, asked: x509.CertificateSigningRequest, usages: list[str], why: str) -> None:
    """Usages and subjects are checked as the built-in signers do."""
    assert request_signing.rejection(signer, asked, usages) == why


def test_requests_with_a_damaged_byte_are_refused() -> None:
    """Each has a field error, and nothing else happens."""
    names = (x509.DNSName("a.example.com"), x509.IPAddress(ipaddress.ip_address("10.0.0.1")))
    der = request("ann", "devs", names=names).public_bytes(serialization.Encoding.DER)
    for index in range(len(der)):
        damaged = der[:index] + bytes([der[index] ^ 0x55]) + der[index + 1 :]
        body = base64.encodebytes(damaged).decode()
        pem = f"-----BEGIN CERTIFICATE REQUEST-----\n{body}-----END CERTIFICATE REQUEST-----\n"
        spec = {
            "request": base64.b64encode(pem.encode()).decode(),
            "signerName": CLIENT_SIGNER,
            "usages": ["client auth"],
        }
        errors = certificatesigningrequest.validate({"metadata": {"name": "r"}, "spec": spec}, None)
        assert [each.field for each in errors] == ["spec.request"]


@pytest.mark.parametrize(
    ("life_s", "expected"),
    [
        pytest.param(None, timedelta(days=365, minutes=-5), id="none"),
        pytest.param(10**9, timedelta(days=365, minutes=-5), id="longer than a year"),
        pytest.param(8 * 3600, timedelta(hours=8, minutes=-5), id="eight hours"),
        pytest.param(8 * 3600 - 1, timedelta(seconds=8 * 3600 - 1), id="less than eight hours"),
        pytest.param(1, timedelta(minutes=10), id="less than ten minutes"),
    ],
)
def test_the_life_of_certificates(tmp_path: Path, life_s: int | None, expected: timedelta) -> None:
    """It begins five minutes ago; short lives end as asked."""
    now_ns = VirtualClock().now_ns()
    pem = RequestSigner(tmp_path).sign(request("ann"), ["client auth"], life_s, now_ns=now_ns)
    made, now = x509.load_pem_x509_certificate(pem), certificates.utc(now_ns)
    assert (made.not_valid_before_utc - now, made.not_valid_after_utc - now) == (timedelta(minutes=-5), expected)


def test_a_certificate_has_the_subject_and_is_for_clients_only(tmp_path: Path) -> None:
    """Extensions of the request are not copied, except for alternative names."""
    names = (x509.DNSName("a.example.com"),)
    asked = request("ann", "devs", names=names)
    now_ns = VirtualClock().now_ns()
    made = x509.load_pem_x509_certificate(RequestSigner(tmp_path).sign(asked, NODE_USAGES, None, now_ns=now_ns))
    made.verify_directly_issued_by(x509.load_pem_x509_certificate(certificates.authority_of(tmp_path, now_ns=now_ns)))
    assert made.subject == asked.subject
    found = {type(each.value): each.value for each in made.extensions}
    assert found[x509.ExtendedKeyUsage] == x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    assert found[x509.BasicConstraints] == x509.BasicConstraints(ca=False, path_length=None)
    assert found[x509.SubjectAlternativeName] == x509.SubjectAlternativeName(names)
    assert len(found) == 5


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        pytest.param(["client auth"], None, id="none"),
        pytest.param(NODE_USAGES, (True, False), id="signatures"),
        pytest.param(["client auth", "key encipherment"], (False, True), id="encipherment"),
    ],
)
def test_key_usages(tmp_path: Path, usages: list[str], expected: tuple[bool, bool] | None) -> None:
    """A certificate without any has no such extension, which would forbid its use."""
    now_ns = VirtualClock().now_ns()
    made = x509.load_pem_x509_certificate(RequestSigner(tmp_path).sign(request("ann"), usages, None, now_ns=now_ns))
    found = [each.value for each in made.extensions if isinstance(each.value, x509.KeyUsage)]
    assert [(each.digital_signature, each.key_encipherment) for each in found] == (
        [] if expected is None else [expected]
    )


def _policy() -> PolicyIndex:
    """ann approves for the client signer, ben for all of kubernetes.io; cat signs for the client signer."""
    index = PolicyIndex()
    grants = (("ann", "approve", CLIENT_SIGNER), ("ben", "approve", "kubernetes.io/*"), ("cat", "sign", CLIENT_SIGNER))
    for user, verb, signer in grants:
        rule = {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": [signer]}
        role = {"metadata": {"name": user}, "rules": [rule | {"verbs": [verb]}]}
        subject = {"kind": "User", "name": user, "apiGroup": RBAC}
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": user}
        binding = {"metadata": {"name": user}, "subjects": [subject], "roleRef": reference}
        index.put(entries.from_object(CLUSTER_ROLES, role, 1))
        index.put(entries.from_object(CLUSTER_ROLE_BINDINGS, binding, 1))
    return index


@dataclass
class World:
    """What a test acts on."""

    objects: Objects
    clock: VirtualClock

    async def create(self, obj: Object, user: str = "dee") -> Object:
        """Create a request as a user."""
        with acting_user.as_user(User(user, ("devs",), "u-1", {"k": ("v",)})):
            return (await self.objects.create(KEY, obj)).decode()

    async def write(self, user: str, subresource: str, **condition: str) -> Object:
        """Add a condition by a subresource as a user."""

        def change(stored: Object) -> Object:
            stored.setdefault("status", {})["conditions"] = [{"status": "True", **condition}]
            return stored

        with acting_user.as_user(User(user)):
            return (await self.objects.update(KEY, "", "r", change, options=UpdateOptions(subresource))).decode()

    def find(self) -> Object | None:
        """The request."""
        entry = self.objects.find(KEY, "", "r")
        return None if entry is None else entry.decode()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A registry with admission and the controller."""
    clock = VirtualClock()
    async with open_registry(tmp_path, catalog.RESOURCES, clock) as opened:
        certificate_admission.register_requests(opened.objects, Authorizer(_policy()), clock)
        controller = CertificateSigning(opened.registry, clock, RequestSigner(tmp_path))
        task = asyncio.create_task(ControlLoop(controller, opened.registry, clock).run())
        yield World(opened.objects, clock)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_user_is_the_one_who_creates(world: World) -> None:
    """What the client says about the user is replaced."""
    asked = signing_request(request("ann"), "client auth")
    asked["spec"] |= {"username": "root", "groups": ["system:masters"]}
    spec = (await world.create(asked))["spec"]
    found = {name: spec[name] for name in ("username", "groups", "uid", "extra")}
    groups = ["devs", "system:authenticated"]
    assert found == {"username": "dee", "groups": groups, "uid": "u-1", "extra": {"k": ["v"]}}


@pytest.mark.parametrize(
    ("user", "subresource", "condition", "allowed"),
    [
        ("ann", "approval", "Approved", True),
        ("ben", "approval", "Denied", True),
        ("cat", "approval", "Approved", False),
        ("dee", "approval", "Approved", False),
        ("cat", "status", "Failed", True),
        ("ann", "status", "Failed", False),
    ],
)
async def test_permissions_on_the_signer(
    world: World, user: str, subresource: str, condition: str, allowed: bool
) -> None:
    """Approving needs `approve`, writing the status `sign`, on the signer or on its domain."""
    await world.create(signing_request(request("ann"), "client auth"))
    if allowed:
        found = await world.write(user, subresource, type=condition)
        assert [each["type"] for each in found["status"]["conditions"]] == [condition]
        return
    verb = "approve" if subresource == "approval" else "sign"
    with pytest.raises(StatusError, match=f"user not permitted to {verb} requests with signerName") as refused:
        await world.write(user, subresource, type=condition)
    assert refused.value.code == 403


async def test_a_request_is_approved_or_denied(world: World) -> None:
    """Both at a time are refused in the words of declarative validation."""
    await world.create(signing_request(request("ann"), "client auth"))

    def change(stored: Object) -> Object:
        stored["status"] = {"conditions": [{"type": each, "status": "True"} for each in ("Approved", "Denied")]}
        return stored

    value = r"{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}"
    text = 'must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`'
    with acting_user.as_user(User("ann")), pytest.raises(StatusError) as refused:
        await world.objects.update(KEY, "", "r", change, options=UpdateOptions("approval"))
    assert refused.value.message.endswith(f'is invalid: status.conditions: Invalid value: "{value}": {text}')


async def _settle(world: World) -> Object:
    """The request when the controller has nothing more to do; signing runs in a thread."""
    for _ in range(2000):
        await world.clock.advance(0.0)
        found = world.find() or {}
        status = found.get("status") or {}
        if status.get("certificate") or len(status.get("conditions") or []) > 1:
            return found
        await asyncio.to_thread(lambda: None)
    raise AssertionError("the controller has not finished")


async def test_an_approved_request_is_signed(world: World) -> None:
    """The certificate is in the status, with the subject of the request."""
    await world.create(signing_request(request("ann", "devs"), "client auth"))
    await world.write("ann", "approval", type="Approved")
    found = await _settle(world)
    made = x509.load_pem_x509_certificate(base64.b64decode(found["status"]["certificate"]))
    assert made.subject.rfc4514_string() == "CN=ann,O=devs"


async def test_a_request_that_the_signer_refuses_fails(world: World) -> None:
    """The condition says why, and there is no certificate."""
    await world.create(signing_request(request("ann"), "server auth"))
    await world.write("ann", "approval", type="Approved")
    status = (await _settle(world))["status"]
    failed = {name: status["conditions"][1][name] for name in ("type", "status", "reason", "message")}
    why = "invalid usage for client certificate: server auth"
    assert failed == {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why}
    assert "certificate" not in status


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    """DSA keys are not certified."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ann")])
    key = dsa.generate_private_key(2048)
    asked = x509.CertificateSigningRequestBuilder(subject).sign(key, hashes.SHA256())
    with pytest.raises(ValueError, match="cannot be certified"):
        RequestSigner(tmp_path).sign(asked, ["client auth"], None, now_ns=1767225600 * NANOSECONDS)


@pytest.mark.parametrize(
    ("condition", "kept_s"),
    [pytest.param("", PENDING_TTL_S, id="pending"), pytest.param("Denied", FINISHED_TTL_S, id="denied")],
)
async def test_old_requests_are_deleted(world: World, condition: str, kept_s: int) -> None:
    """Pending ones after a day, denied ones after an hour."""
    await world.create(signing_request(request("ann"), "client auth", signer="kubernetes.io/kubelet-serving"))
    if condition:
        await world.write("ben", "approval", type=condition)
    await world.clock.advance(kept_s - 2)
    assert world.find() is not None
    await world.clock.advance(4)
    assert world.find() is None


async def test_requests_for_other_signers_are_left_alone(world: World) -> None:
    """An approved request for kubelet-serving gets no certificate."""
    await world.create(signing_request(request("ann"), "server auth", signer="kubernetes.io/kubelet-serving"))
    await world.write("ben", "approval", type="Approved")
    await world.clock.advance(1)
    assert [each["type"] for each in (world.find() or {})["status"]["conditions"]] == ["Approved"]
