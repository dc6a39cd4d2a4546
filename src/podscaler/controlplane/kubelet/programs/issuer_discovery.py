"""`agnhost test-service-account-issuer-discovery`: verifies a token by the OpenID documents of its issuer.

`programs.agnhost` calls `main`. It trusts the authority of the cluster alone, and presents the token of the pod's
ServiceAccount. PyJWT is imported from the site-packages of podscaler, without which the other programs here start. A
new check: `verified_claims`.

Source: test/images/agnhost/openidmetadata of Kubernetes v1.37 (flags, order of the checks).
Differs: documents outside of the cluster are not tried.
"""

import json
import site
import ssl
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from podscaler.controlplane.kubelet.programs.go_flags import ArgumentParser

ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ALGORITHMS: Final = ("RS256", "ES256", "ES384", "ES512")
DOCUMENT_BYTES_MAX: Final = 1024 * 1024
TIMEOUT_S: Final = 10.0

Fetch = Callable[[str], Mapping[str, Any]]
"""URL -> the JSON object there."""


def fetch_with_account(url: str, account_folder: Path = ACCOUNT_FOLDER) -> Mapping[str, Any]:
    """The JSON object at a URL of the cluster, for the token of the pod's account. Raises OSError, ValueError."""
    if not url.startswith("https://"):
        raise ValueError(f"{url!r} is no https URL")
    token = (account_folder / "token").read_text(encoding="ascii").strip()
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310  https alone
    context = ssl.create_default_context(cafile=str(account_folder / "ca.crt"))
    response_context = urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context)  # noqa: S310  as above
    with response_context as response:
        document = json.loads(response.read(DOCUMENT_BYTES_MAX))
    if not isinstance(document, dict):
        raise ValueError(f"{url!r} is no JSON object")
    return document


def verified_claims(token: str, audience: str, fetch: Fetch) -> Mapping[str, Any]:
    """The claims of a token whose signature, issuer, audience and times are right.

    Raises OSError and ValueError of `fetch`, ValueError where the issuer is another, KeyError where its key is absent,
    jwt.PyJWTError.
    """
    import jwt

    issuer = str(jwt.decode(token, options={"verify_signature": False}).get("iss", ""))
    print(f"OK: got issuer {issuer}", file=sys.stderr)
    discovery = fetch(f"{issuer.removesuffix('/')}/.well-known/openid-configuration")
    if discovery.get("issuer") != issuer:
        raise ValueError(f"the issuer of the document is {discovery.get('issuer')!r}, not {issuer!r}")
    keys = jwt.PyJWKSet.from_dict(dict(fetch(str(discovery.get("jwks_uri")))))
    key = keys[str(jwt.get_unverified_header(token).get("kid"))]
    claims: Mapping[str, Any] = jwt.decode(token, key, algorithms=list(ALGORITHMS), audience=audience, issuer=issuer)
    return claims


def main(args: Sequence[str]) -> int:
    """Verify the token of `--token-path`; returns 0 if it is valid, 1 if it is not. Nothing of the token is printed."""
    parser = ArgumentParser(prog="test-service-account-issuer-discovery")
    parser.add_flag("token-path", "")
    parser.add_flag("audience", "")
    options = parser.parse_args(args)
    site.main()
    import jwt

    try:
        token = Path(options.token_path).read_text(encoding="ascii").strip()
        verified_claims(token, options.audience, fetch_with_account)
    except (OSError, ValueError, KeyError, jwt.PyJWTError) as failure:
        print(f"failed to validate with in-cluster discovery: {failure!r}", file=sys.stderr)
        return 1
    print("OK: Validated signature on JWT", file=sys.stderr)
    return 0
