"""Issues and verifies the tokens of service accounts, which are JSON Web Tokens (JWT).

`handlers.token_requests`, the node agent and the controller of token Secrets issue tokens;
`authenticator.Authenticator` verifies them. Tokens are not stored: a token is valid if its signature, time and audience
are, and its service account (with the same uid) and the pod, node or Secret that it is bound to still exist. The claim
`kubernetes.io` of a token has their names and uids: {"namespace": "default", "pod": {"name": ..., "uid": ...},
"serviceaccount": {...}}.

Source: RFC 7519; the claims and the checks of kube-apiserver's service account token authenticator.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import uuid4

import jwt
from jwt.types import Options

from podscaler.api.machinery import instants
from podscaler.api.resource.resources import Object
from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import StatusError
from podscaler.base.lru import LRU
from podscaler.controlplane.auth.policy_rules import quoted
from podscaler.controlplane.credentials.signing_key import ALGORITHM, SigningKey
from podscaler.controlplane.registry import users
from podscaler.controlplane.registry.users import User
from podscaler.controlplane.storage.entries import Entry

ISSUER = "https://kubernetes.default.svc.cluster.local"
KUBERNETES_CLAIM = "kubernetes.io"
DEFAULT_AUDIENCES = (ISSUER,)
"""The audiences of this API server, by default the issuer alone: it accepts tokens that are valid for one of them."""
POD_TOKEN_LIFETIME_S = 3607
"""The lifetime that the token volume of every pod requests; such tokens get `EXTENDED_LIFETIME_S`, for clients that
never read the file again. As upstream, the odd number tells them from tokens for which a user requests an hour."""
EXTENDED_LIFETIME_S = 365 * 24 * 3600
SECRET_TOKEN_LIFETIME_S = 10 * EXTENDED_LIFETIME_S
"""The lifetime of tokens in Secrets, which do not expire upstream."""
_DELETION_LEEWAY_S = 60
"""A token stays valid this long after the deletionTimestamp of an object that it is bound to."""
_CACHED_TOKENS = 4096
_RESOURCES_BY_CLAIM = {"pod": "pods", "secret": "secrets", "node": "nodes"}
"""The `Resource.key` of the objects in the claim `kubernetes.io` that a token may be bound to, by their member there.

Another kind: an entry here, and its name in `TokenTerms.bound`."""
_EXTRA_PREFIX = "authentication.kubernetes.io"
_DECODE_OPTIONS: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False}
"""The JWT library checks the signature only: times and audiences are checked here, by the control plane's clock."""

FindEntry = Callable[[str, str, str], Entry | None]
"""Finds an object by `Resource.key`, namespace and name."""


@dataclass(frozen=True, slots=True)
class TokenRejection:
    """Why a token is not accepted; the message is kube-apiserver's."""

    message: str


@dataclass(frozen=True, slots=True)
class AuthenticatedUser:
    """The result of a successful authentication.

    Attributes:
        user: the user of the token.
        audiences: those of the requested audiences for which the token is valid, at least one.
    """

    user: User
    audiences: Sequence[str]


INVALID_TOKEN = TokenRejection("invalid bearer token")
_INVALIDATED_TOKEN = TokenRejection("[invalid bearer token, service account token has been invalidated]")


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """The requested properties of a new token.

    Attributes:
        audiences: the audiences that may accept it.
        lifetime_s: the lifetime in seconds from the issue.
        bound: the objects whose deletion invalidates it, by `pod`, `secret`, `node`; with a pod, the node's deletion
            does not invalidate it.
    """

    audiences: Sequence[str]
    lifetime_s: int
    bound: Mapping[str, Object]


class AccountTokens:
    """Issues and verifies tokens with one signing key.

    Args:
        key: signs tokens.
        find: finds service accounts and bound objects.
        clock: the time of issue and expiry.
    """

    def __init__(self, key: SigningKey, find: FindEntry, clock: Clock) -> None:
        self._key = key
        self._find = find
        self._clock = clock
        self._headers = {"kid": key.public_jwk["kid"]}
        self._public_key = key.private.public_key()
        self._claims: LRU[bytes, dict[str, Any]] = LRU(_CACHED_TOKENS)
        """The claims of tokens with a valid signature, by the digest of the token."""

    @property
    def key_set(self) -> Object:
        """The keys that verify tokens, as a JSON Web Key Set."""
        return {"keys": [self._key.public_jwk]}

    def issue(self, account: Object, terms: TokenTerms) -> str:
        """A new token of a stored ServiceAccount, as a signed JSON Web Token."""
        metadata = account["metadata"]
        now_s = self._clock.now_ns() // NANOSECONDS
        bindings: dict[str, Any] = {"namespace": metadata["namespace"]}
        for kind in sorted(terms.bound):
            bindings[kind] = _name_and_uid(terms.bound[kind])
        bindings["serviceaccount"] = _name_and_uid(account)
        lifetime_s = terms.lifetime_s
        is_for_this_server = bool(set(terms.audiences) & set(DEFAULT_AUDIENCES))
        if lifetime_s == POD_TOKEN_LIFETIME_S and "pod" in terms.bound and is_for_this_server:
            bindings["warnafter"] = now_s + lifetime_s  # when clients should have read the file again
            lifetime_s = EXTENDED_LIFETIME_S
        claims = {
            "aud": list(terms.audiences),
            "exp": now_s + lifetime_s,
            "iat": now_s,
            "iss": ISSUER,
            "jti": str(uuid4()),
            KUBERNETES_CLAIM: bindings,
            "nbf": now_s,
            "sub": users.account_name(metadata["namespace"], metadata["name"]),
        }
        return jwt.encode(claims, self._key.private, algorithm=ALGORITHM, headers=self._headers)

    def issue_for_pod(self, pod: Mapping[str, Any], audience: str, lifetime_s: int) -> str:
        """A new token of a pod's service account, bound to the pod.

        Args:
            pod: must be assigned to a node.
            audience: empty for the API server.
            lifetime_s: the lifetime in seconds.

        Raises StatusError 404 for a missing service account.
        """
        metadata, spec = pod["metadata"], pod["spec"]
        name = spec.get("serviceAccountName") or "default"
        account = self._find("serviceaccounts", metadata["namespace"], name)
        if account is None:
            raise StatusError(f'serviceaccounts "{name}" not found', code=404, reason="NotFound")
        node = self._find("nodes", "", spec.get("nodeName") or "")
        bound: dict[str, Object] = {"pod": dict(pod)} | ({"node": node.decode()} if node is not None else {})
        return self.issue(
            account.decode(), TokenTerms([audience] if audience else DEFAULT_AUDIENCES, lifetime_s, bound)
        )

    def issue_for_secret(self, account: Object, secret: Object) -> str:
        """A new long-lived token of a ServiceAccount, bound to the Secret that holds it."""
        return self.issue(account, TokenTerms(DEFAULT_AUDIENCES, SECRET_TOKEN_LIFETIME_S, {"secret": secret}))

    def user_of_token(self, token: str, audiences: Sequence[str]) -> AuthenticatedUser | TokenRejection | None:
        """The user of a token that is valid for one of `audiences`, or why it is not accepted.

        None if it has another issuer or is no JSON Web Token.
        """
        claims = self._verify_signature(token)
        if claims is None or isinstance(claims, TokenRejection):
            return claims
        common = [audience for audience in claims.get("aud") or () if audience in audiences]
        if not common:
            token_audiences, expected = quoted(claims.get("aud") or ()), quoted(audiences)
            return TokenRejection(f"token audiences {token_audiences} is invalid for the target audiences {expected}")
        return self._find_rejection(claims) or AuthenticatedUser(_user_of_claims(claims), common)

    def _verify_signature(self, token: str) -> dict[str, Any] | TokenRejection | None:
        """The claims of a token with a valid signature, cached by its digest; other results as of `user_of_token`."""
        digest = sha256(token.encode("utf-8", "surrogateescape")).digest()
        claims = self._claims.find(digest)
        if claims is not None:
            return claims
        try:
            if jwt.decode(token, options={"verify_signature": False}).get("iss") != ISSUER:
                return None
        except (jwt.InvalidTokenError, UnicodeError):
            return None
        try:
            claims = jwt.decode(token, self._public_key, algorithms=[ALGORITHM], options=_DECODE_OPTIONS)
        except jwt.InvalidTokenError:
            return INVALID_TOKEN
        self._claims.put(digest, claims)
        return claims

    def _find_rejection(self, claims: Mapping[str, Any]) -> TokenRejection | None:
        """Why a token with a valid signature is not valid now, None if it is."""
        now_s = self._clock.now_ns() // NANOSECONDS
        if now_s >= claims["exp"]:
            return TokenRejection("[invalid bearer token, service account token has expired]")
        if now_s < claims["nbf"]:
            return TokenRejection("[invalid bearer token, service account token is not valid yet]")
        bindings = claims[KUBERNETES_CLAIM]
        namespace, account = bindings["namespace"], bindings["serviceaccount"]
        if self._is_deleted("serviceaccounts", namespace, account, now_s):
            return _INVALIDATED_TOKEN
        for kind, resource in _RESOURCES_BY_CLAIM.items():
            if kind not in bindings or (kind == "node" and "pod" in bindings):
                continue
            if self._is_deleted(resource, "" if kind == "node" else namespace, bindings[kind], now_s):
                return _INVALIDATED_TOKEN
        return None

    def _is_deleted(self, resource: str, namespace: str, reference: Mapping[str, str], now_s: int) -> bool:
        """Whether the object of a reference (name and uid) is gone, or is being deleted for more than the leeway."""
        entry = self._find(resource, namespace, reference["name"])
        if entry is None or entry.uid != reference.get("uid"):
            return True
        if b'"deletionTimestamp"' not in entry.body:  # checked for every request: decoding most objects is avoided
            return False
        deletion_time = entry.decode()["metadata"].get("deletionTimestamp")
        return deletion_time is not None and instants.parse(deletion_time) // NANOSECONDS + _DELETION_LEEWAY_S < now_s


def _name_and_uid(obj: Object) -> dict[str, str]:
    """Name and uid of an object, as the claim `kubernetes.io` has them."""
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _user_of_claims(claims: Mapping[str, Any]) -> User:
    """The user of a token: its service account; `extra` names the token and the pod and node that it is bound to."""
    bindings = claims[KUBERNETES_CLAIM]
    extra = {f"{_EXTRA_PREFIX}/credential-id": [f"JTI={claims['jti']}"]}
    for kind in ("node", "pod"):
        if kind in bindings:
            extra[f"{_EXTRA_PREFIX}/{kind}-name"] = [bindings[kind]["name"]]
            extra[f"{_EXTRA_PREFIX}/{kind}-uid"] = [bindings[kind]["uid"]]
    namespace, account = bindings["namespace"], bindings["serviceaccount"]
    return User(claims["sub"], users.account_groups(namespace), account["uid"], dict(sorted(extra.items())))
