"""Flags that say where the controller's endpoints are served, and how."""

from pathlib import Path
from typing import Any

import pytest

from podscaler.base.errors import UsageError
from podscaler.cli.options import endpoints
from podscaler.cli.options.endpoints import Serving


def options(
    address: str = "", certificate: str | None = None, key: str | None = None, *, authentication: str = "off"
) -> dict[str, Any]:
    """The values of the flags, as click gives them."""
    return {
        "metrics_bind_address": address,
        "tls_cert_file": None if certificate is None else Path(certificate),
        "tls_private_key_file": None if key is None else Path(key),
        "metrics_authentication": authentication,
    }


@pytest.mark.parametrize(
    ("given", "serving"),
    [
        pytest.param(options(), None, id="nowhere"),
        pytest.param(options("127.0.0.1:9090"), Serving("127.0.0.1", 9090), id="an address"),
        pytest.param(options(":9090"), Serving("0.0.0.0", 9090), id="all addresses"),
        pytest.param(options("[::]:0"), Serving("::", 0), id="IPv6, a free port"),
        pytest.param(options("a:1", "c", "k"), Serving("a", 1, (Path("c"), Path("k"))), id="HTTPS"),
        pytest.param(
            options("a:1", "c", "k", authentication="delegated"),
            Serving("a", 1, (Path("c"), Path("k")), is_delegated=True),
            id="the API server says who may read",
        ),
    ],
)
def test_what_the_flags_mean(given: dict[str, Any], serving: Serving | None) -> None:
    """An empty host means all addresses, as in upstream's flags."""
    assert endpoints.parse_serving(given) == serving


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(options("9090"), '--metrics-bind-address "9090" is not HOST:PORT', id="no host"),
        pytest.param(options("a:b"), '--metrics-bind-address "a:b" is not HOST:PORT', id="no number"),
        pytest.param(options("a:65536"), '--metrics-bind-address "a:65536" is not HOST:PORT', id="too large"),
        pytest.param(options("a:1", "c"), "--tls-cert-file and --tls-private-key-file go together", id="no key"),
        pytest.param(
            options("", "c", "k"),
            "--tls-cert-file needs --metrics-bind-address: nothing is served without it",
            id="a certificate for nothing",
        ),
        pytest.param(
            options("a:1", authentication="delegated"),
            "--metrics-authentication=delegated needs --tls-cert-file: tokens are not to be sent over plain HTTP",
            id="tokens over plain HTTP",
        ),
    ],
)
def test_what_makes_no_sense_is_named(given: dict[str, Any], said: str) -> None:
    """One sentence with the flag."""
    with pytest.raises(UsageError) as refused:
        endpoints.parse_serving(given)
    assert str(refused.value) == said
