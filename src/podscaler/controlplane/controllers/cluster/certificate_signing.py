"""The certificate signing controller: signs approved requests for client certificates, and deletes old ones.

`controller_manager.Controllers` runs it in a `control_loop.ControlLoop`. It signs for the two signers of client
certificates (`credentials.request_signing.SIGNERS`); a request that a signer rejects gets the condition Failed.
Requests for other signers are left to their controllers. Another signer belongs in `credentials.request_signing`.

Source: kube-controller-manager's csrsigning and csrcleaner controllers, with their periods. Differs: nothing approves
the requests of kubelets by itself.
"""

import asyncio
import base64
from collections.abc import Iterable, Iterator, Sequence

from podscaler.api.kinds.core import certificatesigningrequest
from podscaler.api.kinds.core.certificatesigningrequest import APPROVED, DENIED, FAILED
from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, Clock, rfc3339
from podscaler.controlplane.controllers.framework import selection, write_errors
from podscaler.controlplane.controllers.framework.control_loop import Reconciler, Watched
from podscaler.controlplane.controllers.framework.selection import Key
from podscaler.controlplane.credentials import request_signing
from podscaler.controlplane.credentials.request_signing import RequestSigner
from podscaler.controlplane.registry.registry import Registry

REQUESTS = certificatesigningrequest.RESOURCE.key
PENDING_TTL_S = 24 * 3600
FINISHED_TTL_S = 3600
"""How long requests are kept: pending ones since their creation or approval, others since their last condition."""


class CertificateSigning(Reconciler[Key]):
    """Signs approved requests, and deletes old ones. Keys are an empty namespace and the name of a request.

    Args:
        registry: the objects.
        clock: the time of certificates and conditions.
        signer: has the cluster's authority.
    """

    name = "certificatesigningrequest-signing-controller"

    def __init__(self, registry: Registry, clock: Clock, signer: RequestSigner) -> None:
        self._registry = registry
        self._clock = clock
        self._signer = signer

    def watches(self) -> Sequence[Watched[Key]]:
        """All requests."""
        return [Watched(REQUESTS, selection.own_keys)]

    def prime(self) -> Iterable[Key]:
        """All requests."""
        return [selection.key_of(signing_request) for signing_request in self._registry.list(REQUESTS)]

    async def sync(self, key: Key) -> float | None:
        """Sign or delete one request; returns the seconds until it is to be deleted, None if it is gone or never is.

        Raises StatusError if the write fails.
        """
        signing_request = self._registry.find(REQUESTS, *key)
        if signing_request is None:
            return None
        now_s = self._clock.now_ns() / NANOSECONDS
        left_s = min((expiry_s - now_s for expiry_s in _expiries_s(signing_request)), default=None)
        is_expired = left_s is not None and left_s <= 0
        if is_expired:
            uid = signing_request["metadata"]["uid"]
            await write_errors.ignoring_gone(self._registry.delete(REQUESTS, *key, uid=uid), or_replaced=True)
            return None
        condition_types = certificatesigningrequest.condition_types(signing_request)
        has_certificate = bool((signing_request.get("status") or {}).get("certificate"))
        awaits_signature = APPROVED in condition_types and FAILED not in condition_types and not has_certificate
        if awaits_signature and signing_request["spec"].get("signerName") in request_signing.SIGNERS:
            await self._sign_request(signing_request)
        return left_s

    async def _sign_request(self, signing_request: Object) -> None:
        """Sign a request and write its status: the certificate, or the condition Failed with the reason."""
        spec, status, now_ns = signing_request["spec"], signing_request.setdefault("status", {}), self._clock.now_ns()
        parsed_request, usages = certificatesigningrequest.parse_request(spec["request"]), spec.get("usages") or []
        rejection = request_signing.rejection(spec["signerName"], parsed_request, usages)
        if not rejection:
            lifetime_s = spec.get("expirationSeconds")
            try:
                pem = await asyncio.to_thread(self._signer.sign, parsed_request, usages, lifetime_s, now_ns=now_ns)
                status["certificate"] = base64.b64encode(pem).decode()
            except ValueError as error:
                rejection = str(error)
        if rejection:
            failed = {"type": FAILED, "status": "True", "reason": "SignerValidationFailure", "message": rejection}
            status["conditions"] = [*(status.get("conditions") or []), failed | {"lastUpdateTime": rfc3339(now_ns)}]
        await write_errors.ignoring_gone(self._registry.update(REQUESTS, signing_request, subresource="status"))


def _expiries_s(signing_request: Object) -> Iterator[float]:
    """When a request is deleted, in seconds since the epoch: by its creation, or by each condition; the first wins."""
    status = signing_request.get("status") or {}
    created_at = signing_request["metadata"].get("creationTimestamp")
    conditions = status.get("conditions") or []
    if not conditions:
        yield instants.parse_optional(created_at) / NANOSECONDS + PENDING_TTL_S
    for condition in conditions:
        if condition.get("type") in (APPROVED, DENIED, FAILED):
            is_finished = condition["type"] != APPROVED or bool(status.get("certificate"))
            updated_ns = instants.parse_optional(condition.get("lastUpdateTime") or created_at)
            yield updated_ns / NANOSECONDS + (FINISHED_TTL_S if is_finished else PENDING_TTL_S)
