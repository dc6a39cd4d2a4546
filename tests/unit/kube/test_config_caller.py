"""Who we are to a server, in messages: where credentials come from and of what kind they are, never a secret."""

from pathlib import Path

import pytest

from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import Credentials, NoCredentials, TokenFile, bearer
from podscaler.testing import VirtualClock


class Plugin:
    """Credentials that a program hands out."""

    async def authorization(self) -> str | None:
        return None

    def renew_after_401(self, authorization: str | None) -> bool:
        del authorization
        return False


@pytest.mark.parametrize(
    ("credentials", "certificate", "kind"),
    [
        (bearer("secret"), None, "a bearer token"),
        (TokenFile(Path("/run/token"), VirtualClock()), None, "the token in /run/token"),
        (NoCredentials(), b"secret", "a client certificate"),
        (NoCredentials(), None, "no credentials"),
        (Plugin(), None, "a credential plugin"),
    ],
)
def test_the_caller(credentials: Credentials, certificate: bytes | None, kind: str) -> None:
    """The origin, and the kind in brackets."""
    config = Config("https://h:1", credentials, client_certificate_pem=certificate, origin='context "c" of F')
    assert config.credentials_text == f'context "c" of F ({kind})'
