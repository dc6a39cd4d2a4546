"""Makes a Config of kubeconfig files: chooses context, cluster and user, and reads what they name.

`config.locate` calls `load` with the files that apply; several are merged as by kubectl (the first file with a name
wins, relative paths are relative to the file that holds them). Every error is a UsageError with file and field.

Source: "Organizing Cluster Access Using kubeconfig Files" of the Kubernetes documentation; client-go's clientcmd.
Differs: user names with passwords are an error: no API server since 1.19 accepts them.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from podscaler.api.text.quoting import quoted
from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError
from podscaler.kube.client import urls
from podscaler.kube.config import exec_command, kubeconfig_file
from podscaler.kube.config.certificate_files import CertificateFiles
from podscaler.kube.config.exec_plugin import ExecPlugin
from podscaler.kube.config.kubeconfig_file import KubeconfigCluster, KubeconfigFile, KubeconfigUser
from podscaler.kube.transport import credentials, proxies
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import ClientCertificates, Credentials, NoCredentials, TokenFile


def load(paths: Sequence[Path], context: str | None, clock: Clock) -> Config:
    """The Config of `context` (None or empty for the current one); `paths` in order of precedence, at least one.

    Reads the files and those that they name. Raises UsageError for a file, an entry or a field that cannot be used.
    """
    files = [(path, kubeconfig_file.parse(path, kubeconfig_file.read_file(path, "kubeconfig"))) for path in paths]
    name = context or next((file.current_context for _, file in files if file.current_context), "")
    files_text = ", ".join(str(path) for path in paths)
    if not name:
        raise UsageError(f"kubeconfig {files_text}: no current-context is set; give --context")
    return _config(_choose(files, name, files_text), clock)


class _Entry(msgspec.Struct, frozen=True):
    """A cluster or a user of a kubeconfig: its file and name, for messages and relative paths.

    Attributes:
        path: the kubeconfig.
        name: such as `user "jane"`.
    """

    path: Path
    name: str

    def field_error(self, field: str, message: str) -> UsageError:
        """The error of a field, such as `kubeconfig /home/jane/config: user "jane": client-key: ...`."""
        return UsageError(f"kubeconfig {self.path}: {self.name}: {field}: {message}")

    def bytes_of(self, field: str, inline_base64: str, file: str) -> bytes | None:
        """The data, inline or of a file; inline wins, as in kubectl. None if both are empty. Raises UsageError."""
        if inline_base64:
            try:
                return base64.b64decode("".join(inline_base64.split()), validate=True)
            except (binascii.Error, ValueError) as error:
                raise self.field_error(f"{field}-data", "is not base64") from error
        if not file:
            return None
        try:
            return self.resolve(file).read_bytes()
        except OSError as error:
            raise self.field_error(field, f"{self.resolve(file)}: {error.strerror}") from error

    def resolve(self, file: str) -> Path:
        """The path of a file that the entry names, relative to the kubeconfig."""
        return self.folder / file

    @property
    def folder(self) -> Path:
        """The folder of the kubeconfig."""
        return self.path.expanduser().absolute().parent


class _Choice(msgspec.Struct, frozen=True):
    """The cluster and the user of a context; `origin` names the context and the files, for messages."""

    origin: str
    namespace: str
    cluster_entry: _Entry
    cluster: KubeconfigCluster
    user_entry: _Entry
    user: KubeconfigUser


def _choose(files: Sequence[tuple[Path, KubeconfigFile]], name: str, files_text: str) -> _Choice:
    """The cluster and the user of the context `name`; `files_text` names the files. Raises UsageError."""
    _, context = _find_entry(files, "contexts", name, files_text)
    cluster_path, cluster = _find_entry(files, "clusters", context.cluster, files_text)
    user_path, user = (  # a context may name no user: then there are no credentials
        _find_entry(files, "users", context.user, files_text) if context.user else (cluster_path, KubeconfigUser())
    )
    return _Choice(
        origin=f'context "{name}" of {files_text}',
        namespace=context.namespace or "default",
        cluster_entry=_Entry(cluster_path, f'cluster "{context.cluster}"'),
        cluster=cluster,
        user_entry=_Entry(user_path, f'user "{context.user}"'),
        user=user,
    )


def _find_entry(
    files: Sequence[tuple[Path, KubeconfigFile]], section: str, name: str, files_text: str
) -> tuple[Path, Any]:
    """The file and content of the first entry `name` with content in a section (`users`). Raises UsageError."""
    kind = section.removesuffix("s")
    for path, file in files:
        for entry in getattr(file, section) or ():
            if entry.name == name and (content := getattr(entry, kind)) is not None:
                return path, content
    known_names = sorted({entry.name for _, file in files for entry in getattr(file, section) or ()})
    found_text = f"it has {', '.join(known_names)}" if known_names else "it has none"
    raise UsageError(f'kubeconfig {files_text}: {kind} "{name}" is not in {section} ({found_text})')


def _config(choice: _Choice, clock: Clock) -> Config:
    """The Config of a context; reads the files that the cluster and the user name. Raises UsageError."""
    cluster, user = choice.cluster, choice.user
    server = _server(choice.cluster_entry, cluster)
    ca_pem = _authorities_pem(choice.cluster_entry, cluster)
    certificate, key = _client_certificate(choice.user_entry, user)
    provider = _credentials(choice, clock, ca_pem)
    return Config(
        server=server,
        credentials=provider,
        ca_pem=ca_pem,
        client_certificate_pem=certificate,
        client_key_pem=key,
        certificates=_changing_certificates(choice, certificate, key, clock, provider),
        verify=not cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name or None,
        proxy=_proxy(choice.cluster_entry, cluster, server),
        compression=not cluster.disable_compression,
        headers=_impersonation(choice.user_entry, user),
        namespace=choice.namespace,
        origin=choice.origin,
    )


def _server(entry: _Entry, cluster: KubeconfigCluster) -> str:
    """The server's URL without a slash at the end. Raises UsageError."""
    server = cluster.server.rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise entry.field_error("server", f"{quoted(cluster.server)} is not an https:// address")
    if address_error := urls.address_error(cluster.server):
        raise entry.field_error("server", address_error)
    try:
        parts = urlsplit(server)
        is_usable = bool(parts.hostname) and parts.port != 0 and server.isascii() and not parts.query
    except ValueError:
        is_usable = False
    if not is_usable or " " in server:
        raise entry.field_error("server", f"{quoted(cluster.server)} names no host or no usable port")
    return server


def _proxy(entry: _Entry, cluster: KubeconfigCluster, server: str) -> str | None:
    """The proxy's URL by the kubeconfig, else by the environment; None for a direct connection. Raises UsageError."""
    if not cluster.proxy_url:
        return proxies.from_environment(server)
    try:
        return proxies.parse(cluster.proxy_url)
    except ValueError as error:
        raise entry.field_error("proxy-url", str(error)) from error


def _impersonation(entry: _Entry, user: KubeconfigUser) -> tuple[tuple[str, str], ...]:
    """The impersonation headers of a user, in order; empty without `as`. Raises UsageError."""
    try:
        return impersonation_headers(
            user.as_user, uid=user.as_uid, groups=user.as_groups or (), extra=user.as_user_extra or {}
        )
    except ValueError as error:
        raise entry.field_error("as", str(error)) from error


def _authorities_pem(entry: _Entry, cluster: KubeconfigCluster) -> bytes | None:
    """The trusted authorities in PEM, None if the cluster names none. Raises UsageError."""
    ca_pem = entry.bytes_of("certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority)
    if ca_pem is None:
        return None
    if cluster.insecure_skip_tls_verify:
        raise entry.field_error("insecure-skip-tls-verify", "cannot be combined with a certificate authority")
    if b"-----BEGIN CERTIFICATE-----" not in ca_pem:
        raise entry.field_error("certificate-authority", "holds no PEM certificate")
    return ca_pem


def _client_certificate(entry: _Entry, user: KubeconfigUser) -> tuple[bytes | None, bytes | None]:
    """The client certificate and its key in PEM; both None if the user has none. Raises UsageError."""
    certificate = entry.bytes_of("client-certificate", user.client_certificate_data, user.client_certificate)
    key = entry.bytes_of("client-key", user.client_key_data, user.client_key)
    if certificate is None and key is None:
        return None, None
    if key is None:
        raise entry.field_error("client-key", "is missing beside the client certificate")
    if certificate is None:
        raise entry.field_error("client-certificate", "is missing beside the client key")
    return certificate, key


def _changing_certificates(
    choice: _Choice, certificate: bytes | None, key: bytes | None, clock: Clock, provider: Credentials
) -> ClientCertificates | None:
    """The provider of a client certificate that may be renewed, None if it is fixed (inline) or there is none.

    `certificate` and `key` are those of the kubeconfig; a plugin's certificate is used only without them.
    """
    entry, user = choice.user_entry, choice.user
    if certificate is None or key is None:
        return provider if isinstance(provider, ExecPlugin) else None
    if user.client_certificate_data or user.client_key_data:
        return None
    files = entry.resolve(user.client_certificate), entry.resolve(user.client_key)
    return CertificateFiles(*files, clock, certificate + b"\n" + key)


def _credentials(choice: _Choice, clock: Clock, ca_pem: bytes | None) -> Credentials:
    """The provider of the user's Authorization header: the first of token file, token and plugin. Raises UsageError."""
    entry, user = choice.user_entry, choice.user
    if user.auth_provider is not None:
        message = (
            "is not supported since Kubernetes 1.26; use an exec credential plugin (kubelogin, gke-gcloud-auth-plugin)"
        )
        raise entry.field_error("auth-provider", message)
    if user.username or user.password:
        message = "a user name with a password is not supported (no API server since 1.19 takes one); use a token"
        raise entry.field_error("username", message)
    if user.token_file:
        return TokenFile(entry.resolve(user.token_file), clock)
    if user.token:
        return credentials.bearer(user.token)
    if user.exec is not None:
        return _exec_plugin(choice, user.exec, clock, ca_pem)
    return NoCredentials()


def _exec_plugin(choice: _Choice, settings: kubeconfig_file.Exec, clock: Clock, ca_pem: bytes | None) -> ExecPlugin:
    """The provider of credentials that runs the user's plugin. Raises UsageError."""
    entry = choice.user_entry
    try:
        cluster = exec_command.cluster_info(choice.cluster, ca_pem) if settings.provide_cluster_info else None
        return ExecPlugin(exec_command.build_command(settings, entry.folder, cluster), clock)
    except ValueError as error:
        raise entry.field_error("exec", str(error)) from error


NAME_CHARACTERS = "!#$&'*+-.^_`|~"
"""The characters of a header's name besides letters and digits; a per cent sign is escaped as well."""
_CONTROL_CHARACTERS = frozenset(map(chr, (*range(32), 127)))


def impersonation_headers(
    user: str, *, uid: str = "", groups: Sequence[str] = (), extra: Mapping[str, Sequence[str]] | None = None
) -> tuple[tuple[str, str], ...]:
    """The headers that make the API server treat requests as those of `user`; empty without a user.

    Args:
        user: the user to impersonate.
        uid, groups, extra: further attributes of that user; extra maps keys to values.

    Raises:
        ValueError: for a uid, groups or extra without a user, and for control characters, which no header may hold.

    Source: "User impersonation" of the Kubernetes documentation; client-go's transport (escaped keys of extra).
    """
    if not user:
        if uid or groups or extra:
            raise ValueError("is needed where as-uid, as-groups or as-user-extra is given")
        return ()
    headers = [("Impersonate-User", user)]
    headers += [("Impersonate-Uid", uid)] if uid else []
    headers += [("Impersonate-Group", group) for group in groups]
    for key, attributes in sorted((extra or {}).items()):
        header_name = f"Impersonate-Extra-{quote(key.lower(), safe=NAME_CHARACTERS)}"
        headers += [(header_name, attribute) for attribute in attributes]
    if any(not _CONTROL_CHARACTERS.isdisjoint(header) for _, header in headers):
        raise ValueError("holds a control character")
    return tuple(headers)
