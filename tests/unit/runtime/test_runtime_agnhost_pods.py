"""The subcommands of the image agnhost that run once: generated logs, and tokens verified by their issuer."""

import io
import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from podscaler.controlplane.kubelet.programs import issuer_discovery, logs_generator

ISSUER = "https://kubernetes.default.svc.cluster.local"
KEYS = "https://10.0.0.1:6443/openid/v1/jwks"


def test_lines_look_like_requests() -> None:
    """A line has a number, a method, the path of a pod and a status."""
    line = logs_generator.request_line(7, random.Random(1))
    assert re.fullmatch(r"7 (GET|POST|PUT) /api/v1/namespaces/(kube-system|default|ns)/pods/[a-z]{3,4} [2-5]\d\d", line)


def test_lines_have_the_form_of_klog() -> None:
    """The header has severity, date, time, process and place."""
    at = datetime(2026, 11, 23, 9, 8, 7, 65, tzinfo=UTC)
    assert logs_generator.klog_line("a", at, 12) == "I1123 09:08:07.000065      12 logs_generator.go:76] a\n"


def test_lines_are_spread_over_the_duration() -> None:
    """There is a pause after each line."""
    output, pauses_s = io.StringIO(), list[float]()
    logs_generator.write_lines(3, 0.5, output, sleep=pauses_s.append)
    assert (output.getvalue().count("\n"), pauses_s) == (3, [0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param([], "Invalid total number of lines: 0\n", id="no lines"),
        pytest.param(["-t", "1", "--run-duration", "0s"], "Invalid duration: 0s\n", id="no duration"),
    ],
)
def test_invalid_flags_of_the_generator(capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    """Without lines or duration nothing is written."""
    assert (logs_generator.main(args), capsys.readouterr().err) == (255, message)


class Issuer:
    """An issuer of tokens, and its documents."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = ISSUER

    def token(self, **claims: Any) -> str:
        """A token for the audience `test`."""
        claims = {"iss": ISSUER, "aud": ["test"], "exp": datetime.now(UTC) + timedelta(hours=1)} | claims
        return jwt.encode(claims, self.key, algorithm="ES256", headers={"kid": "k"})

    def fetch(self, url: str) -> Mapping[str, Any]:
        """Its documents by URL."""
        public = jwt.algorithms.ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {
            f"{ISSUER}/.well-known/openid-configuration": {"issuer": self.name, "jwks_uri": KEYS},
            KEYS: {"keys": [public | {"kid": "k", "alg": "ES256", "use": "sig"}]},
        }[url]


def test_a_token_of_its_issuer() -> None:
    """A signature by a key of the issuer is right."""
    issuer = Issuer()
    claims = issuer_discovery.verified_claims(issuer.token(sub="a"), "test", issuer.fetch)
    assert claims["sub"] == "a"


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param({"aud": ["other"]}, id="audience"),
        pytest.param({"exp": datetime(2020, 1, 1, tzinfo=UTC)}, id="expired"),
    ],
)
def test_claims_that_do_not_hold(claims: dict[str, Any]) -> None:
    """The audience and the times of a token are verified."""
    issuer = Issuer()
    with pytest.raises(jwt.PyJWTError):
        issuer_discovery.verified_claims(issuer.token(**claims), "test", issuer.fetch)


def test_a_token_of_another_key() -> None:
    """A signature by another key is wrong."""
    with pytest.raises(jwt.InvalidSignatureError):
        issuer_discovery.verified_claims(Issuer().token(), "test", Issuer().fetch)


def test_documents_of_another_issuer() -> None:
    """The document names the issuer that the token names."""
    issuer = Issuer()
    issuer.name = "https://other"
    with pytest.raises(ValueError, match="the issuer of the document is 'https://other'"):
        issuer_discovery.verified_claims(issuer.token(), "test", issuer.fetch)


def test_documents_without_tls() -> None:
    """The token of the account is not sent over http."""
    with pytest.raises(ValueError, match="no https URL"):
        issuer_discovery.fetch_with_account("http://127.0.0.1/")
