"""Reading kubeconfigs: what is taken from them, and the sentence for each fault."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from podscaler.errors import UsageError
from podscaler.kube import kubeconfig, locate
from podscaler.kube.config import Config
from podscaler.kube.credentials import Header, NoCredentials, TokenFile
from podscaler.testing import VirtualClock

CA = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"


def _data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _content(cluster: Any = None, user: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443/"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
    } | more


def _write(folder: Path, content: Any, name: str = "config") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def _load(folder: Path, content: Any, context: str | None = None) -> Config:
    return kubeconfig.load([_write(folder, content)], context, VirtualClock())


def test_a_complete_file(tmp_path: Path) -> None:
    """Server, trust, client certificate, server name, proxy and namespace come from the current context."""
    cluster = {"certificate-authority-data": _data(CA), "tls-server-name": "api", "proxy-url": "http://p:3128"}
    user = {"client-certificate-data": _data("cert"), "client-key-data": _data("key")}
    assert _load(tmp_path, _content(cluster, user)) == Config(
        server="https://h:6443",
        credentials=NoCredentials(),
        ca_pem=CA.encode(),
        client_certificate_pem=b"cert",
        client_key_pem=b"key",
        tls_server_name="api",
        proxy="http://p:3128",
        namespace="shop",
        origin=f'context "main" of {tmp_path}/config',
    )


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    """Paths inside a kubeconfig start at its folder."""
    (tmp_path / "ca.crt").write_text(CA)
    assert _load(tmp_path, _content({"certificate-authority": "ca.crt"})).ca_pem == CA.encode()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "t0k"}, "Bearer t0k"),
        ({"username": "ann", "password": "pw"}, "Basic " + _data("ann:pw")),
    ],
    ids=["token", "password"],
)
def test_credentials(tmp_path: Path, user: dict[str, str], header: str) -> None:
    """Tokens and passwords become the Authorization header, which `repr` hides."""
    config = _load(tmp_path, _content(user=user))
    assert (config.credentials, header in repr(config)) == (Header(header), False)


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    """A token that somebody renews is taken up within a minute, and an unreadable file leaves the last one in use."""
    clock = VirtualClock()
    file = _write(tmp_path, "one\n", "token")
    tokens = TokenFile(file, clock)
    seen = [await tokens.authorization()]
    file.write_text("two")
    await clock.advance(59.9)
    seen.append(await tokens.authorization())
    await clock.advance(0.1)
    seen.append(await tokens.authorization())
    file.unlink()
    assert tokens.refused()
    seen.append(await tokens.authorization())
    assert seen == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]


def test_the_first_file_with_a_name_wins(tmp_path: Path) -> None:
    """Several files are merged as kubectl merges KUBECONFIG."""
    first = _write(tmp_path, {"users": [{"name": "u", "user": {"token": "first"}}]}, "first")
    second = _write(tmp_path, _content(user={"token": "second"}), "second")
    config = kubeconfig.load([first, second], None, VirtualClock())
    assert config.credentials == Header("Bearer first")


FAULTS: dict[str, tuple[Any, str | None, str]] = {
    "no current context": (_content(**{"current-context": ""}), None, "no current-context is set; give --context"),
    "unknown context": (_content(), "x", 'context "x" is not in contexts (it has main)'),
    "unknown cluster": (_content(clusters=None), None, 'cluster "c" is not in clusters (it has none)'),
    "unknown user": (_content(users=[{"name": "v"}]), None, 'user "u" is not in users (it has v)'),
    "no server": (_content({"server": ""}), None, 'cluster "c": server: "" is not an https:// address'),
    "bad proxy": (
        _content({"proxy-url": "socks5://p"}),
        None,
        'cluster "c": proxy-url: "socks5://p" is not an http:// or https:// address',
    ),
    "not base64": (
        _content({"certificate-authority-data": "%%"}),
        None,
        'cluster "c": certificate-authority-data: is not base64',
    ),
    "no certificate": (
        _content({"certificate-authority-data": _data("x")}),
        None,
        'cluster "c": certificate-authority: holds no PEM certificate',
    ),
    "insecure with ca": (
        _content({"certificate-authority-data": _data(CA), "insecure-skip-tls-verify": True}),
        None,
        'cluster "c": insecure-skip-tls-verify: cannot be combined with a certificate authority',
    ),
    "key alone": (
        _content(user={"client-key-data": _data("k")}),
        None,
        'user "u": client-certificate: is missing beside the client key',
    ),
    "certificate alone": (
        _content(user={"client-certificate-data": _data("k")}),
        None,
        'user "u": client-key: is missing beside the client certificate',
    ),
    "exec plugin": (_content(user={"exec": {"command": "aws"}}), None, 'user "u": exec: credential plugins are not'),
    "wrong type": (_content({"server": 5}), None, "Expected `str`, got `int` - at `$.clusters[0].cluster.server`"),
    "not YAML": ("a: [", None, "not valid YAML"),
    "not a mapping": ("- 1", None, "Expected `object`, got `array`"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_name_file_and_field(tmp_path: Path, name: str) -> None:
    """Each fault is one sentence with the file and what is wrong in it."""
    content, context, text = FAULTS[name]
    with pytest.raises(UsageError) as caught:
        _load(tmp_path, content, context)
    assert str(caught.value).startswith(f"kubeconfig {tmp_path}/config: ")
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    """An unreadable kubeconfig is named with the reason."""
    with pytest.raises(UsageError, match=f"^kubeconfig {tmp_path}/none: No such file or directory$"):
        locate.find_config(f"{tmp_path}/none")


def test_a_missing_certificate_file(tmp_path: Path) -> None:
    """A file that a kubeconfig names and that is not there is named with its field."""
    with pytest.raises(UsageError, match=r'cluster "c": certificate-authority: .*ca.crt: No such file'):
        _load(tmp_path, _content({"certificate-authority": "ca.crt"}))


def test_kubeconfig_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """KUBECONFIG names the files where no flag does; files of the list that are not there are skipped."""
    path = _write(tmp_path, _content())
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/none:{path}")
    assert locate.find_config().server == "https://h:6443"


def test_in_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod finds its API server by the environment and its service account."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for name, text in (("token", "t"), ("ca.crt", CA), ("namespace", "shop\n")):
        _write(tmp_path, text, name)
    config = locate.in_cluster(tmp_path, VirtualClock())
    assert (config.server, config.ca_pem, config.namespace) == ("https://[fd00::1]:443", CA.encode(), "shop")


def test_nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without flag, variable, home file and cluster the sentence says what to give."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError, match="no API server is known: give --kubeconfig"):
        locate.find_config()
