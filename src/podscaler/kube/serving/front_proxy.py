"""Authenticates requests by client certificates: of the API server's front proxy, and of users.

The adapter calls `find_user` for each request before it reviews tokens. What the API server trusts is in the ConfigMap
kube-system/extension-apiserver-authentication; it is read at the start and every PERIOD_S. Rules:

1. A certificate by the front proxy's authority, with an allowed common name, is the API server: the user is in the
   headers that the ConfigMap names. With another certificate these headers are ignored.
2. A certificate by the authority of clients is a user: the common name, with the organizations as groups.
3. The handshake verifies a certificate and its purpose against all authorities; here its signature is checked against
   the one authority. Authorities that are not trusted any more stay in the handshake until the process ends.

Source: k8s.io/apiserver's delegated authentication (request header, x509). Differs: certificates by intermediate
authorities are not accepted, and one that no authority has signed is rejected in the handshake.
"""

import asyncio
import logging
import ssl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.base.lru import LRU
from podscaler.kube.client.client import Client
from podscaler.kube.serving.delegated_access import AUTHENTICATED_GROUP, ReviewedUser

log = logging.getLogger(__name__)

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
PERIOD_S = 60.0
FIRST_RETRY_S = 1.0
"""The time between two attempts until the ConfigMap was read once."""
CHECKED_CERTIFICATES_MAX = 256
"""The highest number of certificates whose check is cached."""


class RequestHeaders(Protocol):
    """The headers of a request, by names in any case."""

    def get(self, key: str, default: str) -> str:
        """The first value of a header."""
        ...

    def getall(self, key: str, default: list[str]) -> list[str]:
        """All values of a header."""
        ...

    def keys(self) -> Iterable[str]:
        """The names."""
        ...


@dataclass(frozen=True, slots=True)
class TrustedAuthorities:
    """The contents of the ConfigMap.

    Attributes:
        front_proxy, clients: the certificates of the authorities that sign those of the API server's proxy and of
            users, in PEM; empty if no certificate is trusted.
        allowed_names: the common names that the front proxy may have; empty if any is allowed.
        user_headers, uid_headers, group_headers: the names of the headers with the user, such as `X-Remote-User`.
        extra_prefixes: what the names of the headers with extra attributes begin with (`X-Remote-Extra-`).
    """

    front_proxy: str = ""
    clients: str = ""
    allowed_names: Sequence[str] = ()
    user_headers: Sequence[str] = ()
    uid_headers: Sequence[str] = ()
    group_headers: Sequence[str] = ()
    extra_prefixes: Sequence[str] = ()


class _ConfigMap(msgspec.Struct):
    """A ConfigMap, of which only the data are read."""

    data: dict[str, str] | None = None


class FrontProxyAuthentication:
    """Finds the users of requests with client certificates, by the authorities that the API server publishes.

    Args:
        client: reads the ConfigMap.
        clock: for the period of reading, and for the validity of certificates.
        context: the TLS context of the server; the authorities are added to it.
    """

    def __init__(self, client: Client, clock: Clock, context: ssl.SSLContext) -> None:
        self._client = client
        self._clock = clock
        self._context = context
        self._trusted = TrustedAuthorities()
        # by certificate (DER): whether the front proxy's authority, and whether that of clients, signed it
        self._signers_by_certificate: LRU[bytes, tuple[bool, bool]] = LRU(CHECKED_CERTIFICATES_MAX)
        self.is_ready = False
        """Whether the ConfigMap has been read."""

    async def run(self) -> None:
        """Read the ConfigMap periodically until cancelled."""
        while True:
            await self.refresh()
            await self._clock.sleep(PERIOD_S if self.is_ready else FIRST_RETRY_S)

    async def refresh(self) -> None:
        """Read the ConfigMap once; if that fails, the authorities that were read last stay in use."""
        try:
            body = await self._client.get(CONFIG_MAP, subject="configmaps extension-apiserver-authentication")
            authorities = parse(msgspec.json.decode(body, type=_ConfigMap).data or {})
            await asyncio.to_thread(self._trust, authorities)
        except (StatusError, msgspec.DecodeError, ValueError, ssl.SSLError) as error:
            log.warning("the authorities of the API server's proxy cannot be read: %s", error)
            return
        self.is_ready = True

    def find_user(self, certificate: bytes | None, headers: RequestHeaders) -> ReviewedUser | None:
        """The user of a request; None if its certificate (DER) names none."""
        if certificate is None:
            return None
        is_proxy, is_client = self._signers(certificate)
        if not (is_proxy or is_client):
            return None
        subject = x509.load_der_x509_certificate(certificate).subject
        names = [str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        name = names[0] if names else ""
        trusted = self._trusted
        if is_proxy and (not trusted.allowed_names or name in trusted.allowed_names):
            user = _user_of_headers(trusted, headers)
            if user is not None:
                return user
        if not is_client or not name:
            return None
        groups = [str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
        return ReviewedUser(name, groups=tuple(dict.fromkeys((*groups, AUTHENTICATED_GROUP))))

    def _trust(self, authorities: TrustedAuthorities) -> None:
        """Use these authorities. The call blocks. Raises ssl.SSLError, ValueError."""
        if authorities == self._trusted:
            return
        pem = "\n".join(filter(None, (authorities.front_proxy, authorities.clients)))
        if pem:
            self._context.load_verify_locations(cadata=pem)
            self._context.verify_mode = ssl.CERT_OPTIONAL
        self._trusted = authorities
        self._signers_by_certificate = LRU(CHECKED_CERTIFICATES_MAX)

    def _signers(self, certificate: bytes) -> tuple[bool, bool]:
        """Whether the front proxy's authority signed a certificate, valid now, and whether that of clients did."""
        signers = self._signers_by_certificate.find(certificate)
        if signers is None:
            is_proxy = _is_signed(certificate, self._trusted.front_proxy)
            signers = is_proxy, _is_signed(certificate, self._trusted.clients)
            self._signers_by_certificate.put(certificate, signers)
        parsed = x509.load_der_x509_certificate(certificate)
        now = datetime.fromtimestamp(self._clock.now_ns() / NANOSECONDS, UTC)
        is_valid = parsed.not_valid_before_utc <= now <= parsed.not_valid_after_utc
        return signers if is_valid else (False, False)


def parse(config_map_data: Mapping[str, str]) -> TrustedAuthorities:
    """The authorities of the ConfigMap's data. Raises ValueError."""

    def names(key: str) -> Sequence[str]:
        return msgspec.json.decode(config_map_data.get(key) or "[]", type=list[str])

    return TrustedAuthorities(
        front_proxy=config_map_data.get("requestheader-client-ca-file", ""),
        clients=config_map_data.get("client-ca-file", ""),
        allowed_names=names("requestheader-allowed-names"),
        user_headers=names("requestheader-username-headers"),
        uid_headers=names("requestheader-uid-headers"),
        group_headers=names("requestheader-group-headers"),
        extra_prefixes=names("requestheader-extra-headers-prefix"),
    )


def _is_signed(certificate: bytes, authorities: str) -> bool:
    """Whether one of the authorities (PEM) signed a certificate (DER) directly."""
    leaf = x509.load_der_x509_certificate(certificate)
    for authority in x509.load_pem_x509_certificates(authorities.encode()) if authorities else ():
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _user_of_headers(trusted: TrustedAuthorities, headers: RequestHeaders) -> ReviewedUser | None:
    """The user that the front proxy names; None if it names none."""
    name = _first_value(headers, trusted.user_headers)
    if not name:
        return None
    groups = [group for header in trusted.group_headers for group in headers.getall(header, [])]
    extra: dict[str, tuple[str, ...]] = {}
    for key in dict.fromkeys(headers.keys()):
        for prefix in trusted.extra_prefixes:
            if key.lower().startswith(prefix.lower()):
                extra[unquote(key[len(prefix) :].lower())] = tuple(headers.getall(key, []))
    return ReviewedUser(name, _first_value(headers, trusted.uid_headers), tuple(groups), extra)


def _first_value(headers: RequestHeaders, names: Sequence[str]) -> str:
    """The value of the first of these headers that has one, else empty."""
    header_values = (headers.get(name, "") for name in names)
    return next(filter(None, header_values), "")
