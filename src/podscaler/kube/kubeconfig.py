"""Reading kubeconfig files: which cluster, which user, and what they say.

`kube.locate` calls `load` with the files that apply; several are merged as kubectl does (the first file that has a name
wins, relative paths start at the file that names them). Every fault is one UsageError sentence with file and field.

Source: "Organizing Cluster Access Using kubeconfig Files" of the Kubernetes documentation.
"""

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from podscaler.clock import Clock
from podscaler.errors import UsageError
from podscaler.kube import credentials
from podscaler.kube.config import Config
from podscaler.kube.credentials import Credentials, NoCredentials, TokenFile


class Cluster(msgspec.Struct, rename="kebab", frozen=True):
    """`clusters[].cluster`."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class User(msgspec.Struct, rename="kebab", frozen=True):
    """`users[].user`."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: Any = None
    auth_provider: Any = None


class Context(msgspec.Struct, frozen=True):
    """`contexts[].context`."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct, frozen=True):
    """`clusters[]`."""

    name: str
    cluster: Cluster | None = None


class NamedUser(msgspec.Struct, frozen=True):
    """`users[]`."""

    name: str
    user: User | None = None


class NamedContext(msgspec.Struct, frozen=True):
    """`contexts[]`."""

    name: str
    context: Context | None = None


class File(msgspec.Struct, rename="kebab", frozen=True):
    """A kubeconfig."""

    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


def load(paths: Sequence[Path], context: str | None, clock: Clock) -> Config:
    """What the files say for `context` (None: the current one). Reads files. Raises UsageError."""
    files = [(path, parse(path, read(path, "kubeconfig"))) for path in paths]
    name = context or next((file.current_context for _, file in files if file.current_context), "")
    shown = ", ".join(str(path) for path in paths)
    if not name:
        raise UsageError(f"kubeconfig {shown}: no current-context is set; give --context")
    return _config(_choose(files, name, shown), clock)


def parse(path: Path, data: bytes) -> File:
    """The typed content of a kubeconfig. Raises UsageError for what is no YAML, or has a field of another type."""
    try:
        return msgspec.convert(yaml.safe_load(data) or {}, File)
    except yaml.YAMLError as error:
        raise UsageError(f"kubeconfig {path}: not valid YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"kubeconfig {path}: {error}") from error


def read(path: Path, what: str) -> bytes:
    """The bytes of a file. Raises UsageError that names it, after `what`."""
    try:
        return path.expanduser().read_bytes()
    except OSError as error:
        raise UsageError(f"{what} {path}: {error.strerror}") from error


class _Part(msgspec.Struct, frozen=True):
    """Where a cluster or a user stands, for messages and relative paths."""

    path: Path
    name: str

    def fault(self, field: str, text: str) -> UsageError:
        return UsageError(f"kubeconfig {self.path}: {self.name}: {field}: {text}")

    def bytes_of(self, field: str, inline: str, file: str) -> bytes | None:
        """The data that is given inline (base64) or in a file; inline wins, as in kubectl."""
        if inline:
            try:
                return base64.b64decode("".join(inline.split()), validate=True)
            except (binascii.Error, ValueError) as error:
                raise self.fault(f"{field}-data", "is not base64") from error
        if not file:
            return None
        try:
            return self.resolve(file).read_bytes()
        except OSError as error:
            raise self.fault(field, f"{self.resolve(file)}: {error.strerror}") from error

    def resolve(self, file: str) -> Path:
        return self.path.expanduser().parent / file


class _Choice(msgspec.Struct, frozen=True):
    """What a context names, with the places that it stands in."""

    origin: str
    namespace: str
    cluster_part: _Part
    cluster: Cluster
    user_part: _Part
    user: User


def _choose(files: Sequence[tuple[Path, File]], name: str, shown: str) -> _Choice:
    _, context = _find(files, "contexts", name, shown)
    cluster_path, cluster = _find(files, "clusters", context.cluster, shown)
    user_path, user = _find(files, "users", context.user, shown) if context.user else (cluster_path, User())
    return _Choice(
        f'context "{name}" of {shown}',
        context.namespace or "default",
        _Part(cluster_path, f'cluster "{context.cluster}"'),
        cluster,
        _Part(user_path, f'user "{context.user}"'),
        user,
    )


def _find(files: Sequence[tuple[Path, File]], section: str, name: str, shown: str) -> tuple[Path, Any]:
    kind = section.removesuffix("s")
    for path, file in files:
        for entry in getattr(file, section) or ():
            if entry.name == name and (content := getattr(entry, kind)) is not None:
                return path, content
    known = sorted({entry.name for _, file in files for entry in getattr(file, section) or ()})
    have = f"it has {', '.join(known)}" if known else "it has none"
    raise UsageError(f'kubeconfig {shown}: {kind} "{name}" is not in {section} ({have})')


def _config(choice: _Choice, clock: Clock) -> Config:
    cluster = choice.cluster
    server = cluster.server.rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise choice.cluster_part.fault("server", f'"{cluster.server}" is not an https:// address')
    if cluster.proxy_url and not cluster.proxy_url.startswith(("http://", "https://")):
        raise choice.cluster_part.fault("proxy-url", f'"{cluster.proxy_url}" is not an http:// or https:// address')
    certificate, key = _client_certificate(choice.user_part, choice.user)
    return Config(
        server=server,
        credentials=_credentials(choice.user_part, choice.user, clock),
        ca_pem=_ca(choice.cluster_part, cluster),
        client_certificate_pem=certificate,
        client_key_pem=key,
        verify=not cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name or None,
        proxy=cluster.proxy_url or None,
        namespace=choice.namespace,
        origin=choice.origin,
    )


def _ca(part: _Part, cluster: Cluster) -> bytes | None:
    data = part.bytes_of("certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority)
    if data is None:
        return None
    if cluster.insecure_skip_tls_verify:
        raise part.fault("insecure-skip-tls-verify", "cannot be combined with a certificate authority")
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise part.fault("certificate-authority", "holds no PEM certificate")
    return data


def _client_certificate(part: _Part, user: User) -> tuple[bytes | None, bytes | None]:
    certificate = part.bytes_of("client-certificate", user.client_certificate_data, user.client_certificate)
    key = part.bytes_of("client-key", user.client_key_data, user.client_key)
    if certificate is None and key is None:
        return None, None
    if key is None:
        raise part.fault("client-key", "is missing beside the client certificate")
    if certificate is None:
        raise part.fault("client-certificate", "is missing beside the client key")
    return certificate, key


def _credentials(part: _Part, user: User, clock: Clock) -> Credentials:
    if user.exec is not None or user.auth_provider is not None:
        field = "exec" if user.exec is not None else "auth-provider"
        raise part.fault(
            field, "credential plugins are not supported; use a token, a token file or a client certificate"
        )
    if user.token_file:
        return TokenFile(part.resolve(user.token_file), clock)
    if user.token:
        return credentials.bearer(user.token)
    if user.username:
        return credentials.basic(user.username, user.password)
    return NoCredentials()
