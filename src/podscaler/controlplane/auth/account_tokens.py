"""Tokens of service accounts: signed, for some audiences, until some time, and dead with what they are bound to.

`handlers.token_requests` and the node have tokens made; `tokens.Authenticator` asks whose a token is. Nothing is
stored: what a token says is trusted for its signature, and its service account (with the same uid), and the pod, node
or secret that it is bound to, must still be there.

Source: RFC 7519; the claims and the checks of upstream's service account token authenticator.
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
from podscaler.controlplane.auth.tokens import DEFAULT_AUDIENCES, Known, TokenFault
from podscaler.controlplane.credentials.signing_key import ALGORITHM, SigningKey
from podscaler.controlplane.registry import users
from podscaler.controlplane.registry.users import User
from podscaler.controlplane.storage.entries import Entry

ISSUER = "https://kubernetes.default.svc.cluster.local"
CLAIM = "kubernetes.io"
POD_TOKEN_LIFE_S = 3607
"""What the volume that every pod gets asks for; such tokens are good for longer: not everyone reads them anew."""
EXTENDED_LIFE_S = 365 * 24 * 3600
KEPT_LIFE_S = 10 * EXTENDED_LIFE_S
_DELETED_LEEWAY_S = 60
_REMEMBERED = 4096
_RESOURCES = {"pod": "pods", "secret": "secrets", "node": "nodes"}
_EXTRA = "authentication.kubernetes.io"
_OPTIONS: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_aud": False}
"""Times and audiences are judged here: by the clock of the control plane, in upstream's words."""

Find = Callable[[str, str, str], Entry | None]
"""An object by `Resource.key`, namespace and name."""


@dataclass(frozen=True, slots=True)
class TokenTerms:
    """What a token is for.

    Attributes:
        audiences: who may accept it.
        life_s: for how long it is good.
        bound: what it dies with, by `pod`, `secret`, `node`; a pod's node is told only.
    """

    audiences: Sequence[str]
    life_s: int
    bound: Mapping[str, Object]


class AccountTokens:
    """See the module.

    Args:
        key: signs.
        find: looks at the objects.
        clock: says what time it is.
    """

    def __init__(self, key: SigningKey, find: Find, clock: Clock) -> None:
        self._key = key
        self._find = find
        self._clock = clock
        self._headers = {"kid": key.public_jwk["kid"]}
        self._public = key.private.public_key()
        self._claims: LRU[bytes, dict[str, Any]] = LRU(_REMEMBERED)

    @property
    def audiences(self) -> Sequence[str]:
        """Those for which a token must be good to be used with the API server."""
        return DEFAULT_AUDIENCES

    @property
    def key_set(self) -> Object:
        """The keys that verify tokens, as a JSON Web Key Set."""
        return {"keys": [self._key.public_jwk]}

    def issue(self, account: Object, terms: TokenTerms) -> str:
        """A new token of a ServiceAccount."""
        metadata = account["metadata"]
        now_s = self._clock.now_ns() // NANOSECONDS
        private: dict[str, Any] = {"namespace": metadata["namespace"]}
        for kind in sorted(terms.bound):
            private[kind] = _reference(terms.bound[kind])
        private["serviceaccount"] = _reference(account)
        life_s = terms.life_s
        if life_s == POD_TOKEN_LIFE_S and "pod" in terms.bound and set(terms.audiences) & set(self.audiences):
            private["warnafter"] = now_s + life_s
            life_s = EXTENDED_LIFE_S
        claims = {
            "aud": list(terms.audiences),
            "exp": now_s + life_s,
            "iat": now_s,
            "iss": ISSUER,
            "jti": str(uuid4()),
            CLAIM: private,
            "nbf": now_s,
            "sub": users.account_name(metadata["namespace"], metadata["name"]),
        }
        return jwt.encode(claims, self._key.private, algorithm=ALGORITHM, headers=self._headers)

    def issue_for_pod(self, pod: Mapping[str, Any], audience: str, life_s: int) -> str:
        """A new token of a pod's service account, which dies with the pod.

        Args:
            pod: bound to a node.
            audience: empty for the API server.
            life_s: for how long the token is good.

        Raises:
            StatusError: 404, the account is not there.
        """
        metadata, spec = pod["metadata"], pod["spec"]
        name = spec.get("serviceAccountName") or "default"
        account = self._find("serviceaccounts", metadata["namespace"], name)
        if account is None:
            raise StatusError(f'serviceaccounts "{name}" not found', code=404, reason="NotFound")
        node = self._find("nodes", "", spec.get("nodeName") or "")
        bound: dict[str, Object] = {"pod": dict(pod)} | ({"node": node.decode()} if node is not None else {})
        return self.issue(account.decode(), TokenTerms([audience] if audience else self.audiences, life_s, bound))

    def issue_for_secret(self, account: Object, secret: Object) -> str:
        """A new token of a ServiceAccount that lasts, and dies with the Secret that keeps it."""
        return self.issue(account, TokenTerms(self.audiences, KEPT_LIFE_S, {"secret": secret}))

    def user_of_token(self, token: str, audiences: Sequence[str]) -> Known | TokenFault | None:
        """Whose token it is; None for one that another issuer made, or that is no such token at all."""
        claims = self._verified(token)
        if claims is None or isinstance(claims, TokenFault):
            return claims
        common = [audience for audience in claims.get("aud") or () if audience in audiences]
        if not common:
            given, wanted = quoted(claims.get("aud") or ()), quoted(audiences)
            return TokenFault(f"token audiences {given} is invalid for the target audiences {wanted}")
        return self._fault_of(claims) or Known(_user(claims), common)

    def _verified(self, token: str) -> dict[str, Any] | TokenFault | None:
        """The claims of a token of ours; a signature is verified once for each token as long as it is remembered."""
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
            claims = jwt.decode(token, self._public, algorithms=[ALGORITHM], options=_OPTIONS)
        except jwt.InvalidTokenError:
            return TokenFault("invalid bearer token")
        self._claims.put(digest, claims)
        return claims

    def _fault_of(self, claims: Mapping[str, Any]) -> TokenFault | None:
        """What has become wrong with a token since it was signed."""
        now_s = self._clock.now_ns() // NANOSECONDS
        if now_s >= claims["exp"]:
            return TokenFault("[invalid bearer token, service account token has expired]")
        if now_s < claims["nbf"]:
            return TokenFault("[invalid bearer token, service account token is not valid yet]")
        private = claims[CLAIM]
        namespace, account = private["namespace"], private["serviceaccount"]
        if self._is_gone("serviceaccounts", namespace, account, now_s):
            return TokenFault("[invalid bearer token, service account token has been invalidated]")
        for kind, resource in _RESOURCES.items():
            if kind not in private or (kind == "node" and "pod" in private):
                continue
            where = "" if kind == "node" else namespace
            if self._is_gone(resource, where, private[kind], now_s):
                return TokenFault("[invalid bearer token, service account token has been invalidated]")
        return None

    def _is_gone(self, resource: str, namespace: str, reference: Mapping[str, str], now_s: int) -> bool:
        found = self._find(resource, namespace, reference["name"])
        if found is None or found.uid != reference.get("uid"):
            return True
        if b'"deletionTimestamp"' not in found.body:  # it is looked at for every request: most need not be decoded
            return False
        deleted = found.decode()["metadata"].get("deletionTimestamp")
        return deleted is not None and instants.parse(deleted) // NANOSECONDS + _DELETED_LEEWAY_S < now_s


def _reference(obj: Object) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _user(claims: Mapping[str, Any]) -> User:
    private = claims[CLAIM]
    extra = {f"{_EXTRA}/credential-id": [f"JTI={claims['jti']}"]}
    for kind in ("node", "pod"):
        if kind in private:
            extra[f"{_EXTRA}/{kind}-name"] = [private[kind]["name"]]
            extra[f"{_EXTRA}/{kind}-uid"] = [private[kind]["uid"]]
    namespace, account = private["namespace"], private["serviceaccount"]
    return User(claims["sub"], users.account_groups(namespace), account["uid"], dict(sorted(extra.items())))
