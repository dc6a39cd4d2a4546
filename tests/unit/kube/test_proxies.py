"""Which proxy leads to a server, by the environment."""

import pytest

from podscaler.base.errors import UsageError
from podscaler.kube.transport import dialing, proxies

SERVER = "https://api.example.com:6443"
NAMES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("server", "variables", "proxy"),
    [
        pytest.param(SERVER, {}, None, id="nothing is set"),
        pytest.param(SERVER, {"HTTPS_PROXY": "p:3128"}, "http://p:3128", id="without a scheme it is http"),
        pytest.param(SERVER, {"https_proxy": "https://p"}, "https://p", id="lower case"),
        pytest.param(SERVER, {"HTTP_PROXY": "p"}, None, id="the other scheme's"),
        pytest.param("http://h", {"HTTP_PROXY": "p"}, "http://p", id="a plain server's"),
        pytest.param("https://127.0.0.1:6443", {"HTTPS_PROXY": "p"}, None, id="loopback is never proxied"),
        pytest.param("https://localhost:6443", {"HTTPS_PROXY": "p"}, None, id="nor is localhost"),
    ],
)
def test_proxies(monkeypatch: pytest.MonkeyPatch, server: str, variables: dict[str, str], proxy: str | None) -> None:
    """The variable of the server's scheme counts; this machine is reached directly."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxies.from_environment(server) == proxy


@pytest.mark.parametrize(
    ("server", "no_proxy", "is_exempt"),
    [
        pytest.param(SERVER, "*", True, id="everything"),
        pytest.param(SERVER, "example.com", True, id="a domain with what is under it"),
        pytest.param(SERVER, ".example.com", True, id="only what is under it"),
        pytest.param("https://example.com", ".example.com", False, id="not the domain itself"),
        pytest.param(SERVER, "*.example.com", True, id="a star is a dot"),
        pytest.param(SERVER, "x.com, api.example.com:6443", True, id="host and port"),
        pytest.param(SERVER, "api.example.com:443", False, id="another port"),
        pytest.param(SERVER, "le.com", False, id="part of a name"),
        pytest.param("https://10.0.0.1:443", "10.0.0.0/8", True, id="a network"),
        pytest.param("https://11.0.0.1:443", "10.0.0.0/8,nonsense/x", False, id="another network"),
        pytest.param("https://[fd00::1]:443", "fd00::1", True, id="an IPv6 address"),
        pytest.param("https://[fd00::1]:443", "[fd00::1]:443", True, id="an IPv6 address and port"),
    ],
)
def test_exemptions(monkeypatch: pytest.MonkeyPatch, server: str, no_proxy: str, is_exempt: bool) -> None:
    """NO_PROXY names what is reached directly."""
    monkeypatch.setenv("HTTPS_PROXY", "p")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    assert (proxies.from_environment(server) is None) is is_exempt


def test_an_unusable_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that cannot be used is named with its variable, without its password."""
    monkeypatch.setenv("HTTPS_PROXY", "gopher://ann:secret@p")
    with pytest.raises(UsageError) as caught:
        proxies.from_environment(SERVER)
    assert str(caught.value) == (
        'the environment\'s HTTPS_PROXY: "gopher://ann:xxxxx@p" is not an http://, https:// or socks5:// address'
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:pa//ss@h:1", "http://u:xxxxx@h:1"),
        ("http://u:p//q:r@h", "http://u:xxxxx@h"),
        ("http://u:p@q@h", "http://u:xxxxx@h"),
        ("u:p@h:1", "u:xxxxx@h:1"),
        ("http://u@h", "http://u@h"),
        ("http://h:1/a", "http://h:1/a"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    """Whatever stands in the password, messages have none of it."""
    assert proxies.redacted(url) == shown


@pytest.mark.parametrize(
    ("url", "authorization"),
    [
        ("http://p", None),
        ("http://ann@p", "Basic YW5uOg=="),
        ("http://ann:pass@p", "Basic YW5uOnBhc3M="),
        ("http://:pass@p", "Basic OnBhc3M="),
    ],
)
def test_the_credentials_for_a_proxy(url: str, authorization: str | None) -> None:
    """An empty user or password is sent as it is."""
    assert dialing.proxy_authorization(dialing.parse_address(url)) == authorization
