"""Reading kubeconfigs: what is taken from them, and the sentence for each fault."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from podscaler.base.errors import UsageError
from podscaler.kube.config import kubeconfig, locate
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import NoCredentials, StaticHeader, TokenFile
from podscaler.testing import VirtualClock

V1 = "client.authentication.k8s.io/v1"
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


def test_impersonation_and_compression(tmp_path: Path) -> None:
    """Whom to act for becomes headers, in which keys of extra are lower case and escaped; compression can be off."""
    user = {
        "as": "ann",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"Example.com/Scope": ["x", "y"]},
    }
    config = _load(tmp_path, _content({"disable-compression": True}, user))
    assert (config.compression, config.headers) == (
        False,
        (
            ("Impersonate-User", "ann"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Group", "a"),
            ("Impersonate-Group", "b"),
            ("Impersonate-Extra-example.com%2Fscope", "x"),
            ("Impersonate-Extra-example.com%2Fscope", "y"),
        ),
    )


def test_files_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    """Paths inside a kubeconfig start at its folder."""
    (tmp_path / "ca.crt").write_text(CA)
    assert _load(tmp_path, _content({"certificate-authority": "ca.crt"})).ca_pem == CA.encode()


@pytest.mark.parametrize(
    ("user", "header"),
    [
        ({"token": "t0k"}, "Bearer t0k"),
        ({"token": "t0k", "exec": {"command": "no-such-plugin"}}, "Bearer t0k"),
    ],
    ids=["token", "a token wins over a plugin"],
)
def test_credentials(tmp_path: Path, user: dict[str, str], header: str) -> None:
    """Tokens become the Authorization header, which `repr` hides."""
    config = _load(tmp_path, _content(user=user))
    assert (config.credentials, header in repr(config)) == (StaticHeader(header), False)


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
    await clock.advance(1)
    assert tokens.renew_after_401(seen[-1])
    seen.append(await tokens.authorization())
    assert seen == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]


def test_the_first_file_with_a_name_wins(tmp_path: Path) -> None:
    """Several files are merged as kubectl merges KUBECONFIG."""
    first = _write(tmp_path, {"users": [{"name": "u", "user": {"token": "first"}}]}, "first")
    second = _write(tmp_path, _content(user={"token": "second"}), "second")
    config = kubeconfig.load([first, second], None, VirtualClock())
    assert config.credentials == StaticHeader("Bearer first")


FAULTS: dict[str, tuple[Any, str | None, str]] = {
    "no current context": (_content(**{"current-context": ""}), None, "no current-context is set; give --context"),
    "unknown context": (_content(), "x", 'context "x" is not in contexts (it has main)'),
    "unknown cluster": (_content(clusters=None), None, 'cluster "c" is not in clusters (it has none)'),
    "unknown user": (_content(users=[{"name": "v"}]), None, 'user "u" is not in users (it has v)'),
    "no server": (_content({"server": ""}), None, 'cluster "c": server: "" is not an https:// address'),
    "no host": (_content({"server": "https://:6443"}), None, 'server: "https://:6443" names no host or no usable port'),
    "no port number": (
        _content({"server": "https://h:1_0"}),
        None,
        'cluster "c": server: parse "https://h:1_0": invalid port ":1_0" after host',
    ),
    "bad port": (_content({"server": "https://h:66666"}), None, "server: dial tcp: address 66666: invalid port"),
    "port 0": (_content({"server": "https://h:0"}), None, '"https://h:0" names no host or no usable port'),
    "a line break": (
        _content({"server": "https://h\r\nX: y"}),
        None,
        r'server: parse "https://h\r\nX: y": net/url: invalid control character in URL',
    ),
    "bad proxy": (
        _content({"proxy-url": "ftp://me:secret@p"}),
        None,
        'cluster "c": proxy-url: "ftp://me:xxxxx@p" is not an http://, https:// or socks5:// address',
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
    "plugin without a version": (
        _content(user={"exec": {"command": "aws"}}),
        None,
        'user "u": exec: apiVersion "" is not one of client.authentication.k8s.io/v1, ',
    ),
    "plugin of a version that is gone": (
        _content(user={"exec": {"command": "aws", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
        None,
        'user "u": exec: apiVersion "client.authentication.k8s.io/v1alpha1" is not one of ',
    ),
    "no program": (_content(user={"exec": {"args": ["x"]}}), None, 'user "u": exec: command must be specified'),
    "plugin without interactiveMode": (
        _content(user={"exec": {"command": "true", "apiVersion": V1}}),
        None,
        'user "u": exec: interactiveMode must be specified with client.authentication.k8s.io/v1: one of Never, ',
    ),
    "plugin with an unknown interactiveMode": (
        _content(user={"exec": {"command": "true", "apiVersion": V1, "interactiveMode": "Perhaps"}}),
        None,
        'user "u": exec: interactiveMode "Perhaps" is not one of Never, IfAvailable, Always',
    ),
    "a variable without a name": (
        _content(user={"exec": {"command": "true", "apiVersion": V1, "env": [{"value": "x"}]}}),
        None,
        'user "u": exec: env: the name of each variable must be specified',
    ),
    "a plugin that is not there": (
        _content(
            user={
                "exec": {
                    "command": "no-such-plugin",
                    "apiVersion": V1,
                    "interactiveMode": "Never",
                    "installHint": "get it\nfrom the shop",
                }
            }
        ),
        None,
        'user "u": exec: executable no-such-plugin not found: get it from the shop',
    ),
    "auth provider": (
        _content(user={"auth-provider": {"name": "gcp"}}),
        None,
        'user "u": auth-provider: is not supported since Kubernetes 1.26; use an exec credential plugin',
    ),
    "password": (
        _content(user={"username": "ann", "password": "pw"}),
        None,
        'user "u": username: a user name with a password is not supported',
    ),
    "groups of nobody": (
        _content(user={"as-groups": ["g"]}),
        None,
        'user "u": as: is needed where as-uid, as-groups or as-user-extra is given',
    ),
    "a tab in a name": (_content(user={"as": "ann\tx"}), None, 'user "u": as: holds a control character'),
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


@pytest.mark.parametrize("is_flag", [True, False])
def test_the_home_of_an_unknown_user(monkeypatch: pytest.MonkeyPatch, *, is_flag: bool) -> None:
    """A path below the home folder of a user who does not exist is an error of the user, not of the program."""
    path = "~no-such-user/config"
    monkeypatch.setenv("KUBECONFIG", "" if is_flag else path)
    with pytest.raises(UsageError, match=rf"^kubeconfig {path}: Could not determine home directory"):
        locate.find_config(path if is_flag else None)


def test_in_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod finds its API server by the environment and its service account."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    for name, text in (("token", "t"), ("ca.crt", CA), ("namespace", "shop\n")):
        _write(tmp_path, text, name)
    config = locate.in_cluster_config(tmp_path, VirtualClock())
    assert (config.server, config.ca_pem, config.namespace) == ("https://[fd00::1]:443", CA.encode(), "shop")


def test_a_context_without_a_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context that nothing can name is not ignored."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError, match=r'^--context "x" needs a kubeconfig'):
        locate.find_config(None, "x")


def test_nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without flag, variable, home file and cluster the sentence says what to give."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(UsageError, match="no API server is known: give --kubeconfig"):
        locate.find_config()


@pytest.mark.parametrize(("content", "problem"), [(b" \n", "it is empty"), (b"\xff\xfe", "it is no text")])
async def test_a_token_file_without_a_token(tmp_path: Path, content: bytes, problem: str) -> None:
    """It is an error at first, and later the last token stays in use."""
    file, clock = tmp_path / "token", VirtualClock()
    file.write_bytes(content)
    with pytest.raises(UsageError) as raised:
        await TokenFile(file, clock).authorization()
    file.write_text("first")
    tokens = TokenFile(file, clock)
    before = await tokens.authorization()
    file.write_bytes(content)
    await clock.advance(61)
    assert (str(raised.value), before, await tokens.authorization()) == (
        f"token file {file}: {problem}",
        "Bearer first",
        "Bearer first",
    )
