"""What verifies service account tokens, for those who are not the API server: OpenID Connect discovery.

Called by `non_resource_handlers`.

Source: OpenID Connect Discovery 1.0 as upstream's service account issuer discovery serves it.
"""

from podscaler.api.resource.resources import Object
from podscaler.api.text import json_text
from podscaler.controlplane.apiserver.http.responses import EncodedResponse
from podscaler.controlplane.auth.account_tokens import ISSUER, AccountTokens
from podscaler.controlplane.credentials.signing_key import ALGORITHM

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"
_KEEP = {"Cache-Control": "public, max-age=3600"}


def answer(accounts: AccountTokens, path: str, host: str) -> EncodedResponse | None:
    """The answer for a path of these two, None for any other; `host` is where the client found us."""
    if path == CONFIGURATION_PATH:
        return EncodedResponse(json_text.encode(_configuration(host)), headers=_KEEP)
    if path == KEYS_PATH:
        return EncodedResponse(
            json_text.encode(accounts.key_set), content_type="application/jwk-set+json", headers=_KEEP
        )
    return None


def _configuration(host: str) -> Object:
    return {
        "issuer": ISSUER,
        "jwks_uri": f"https://{host}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
