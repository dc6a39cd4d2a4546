"""Defines the format of kubeconfig files as typed structs; `config.kubeconfig` reads files with it.

`config.locate` reads the service account's files with `read_file`, too. Fields that podscaler does not use are skipped:
a new one is an attribute here, and read by `config.kubeconfig`. The format in brief, with the paths by which the
structs are described:

    clusters: [{name: prod, cluster: {server: "https://10.0.0.1:6443", certificate-authority: ca.pem}}]
    users:    [{name: jane, user: {token: ...}}]
    contexts: [{name: prod, context: {cluster: prod, user: jane}}]
    current-context: prod

Source: client-go's clientcmd/api/v1.
"""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from podscaler.base.errors import UsageError


class Variable(msgspec.Struct, frozen=True):
    """`users[].user.exec.env[]`: a variable of a credential plugin's environment."""

    name: str = ""
    value: str = ""


class Exec(msgspec.Struct, rename="camel", frozen=True):
    """`users[].user.exec`: a credential plugin, a program that prints credentials.

    Attributes:
        command, args, env: the program, its arguments, and variables besides those of this process.
        api_version: the version of ExecCredential that it prints.
        install_hint: the message for a missing program.
        provide_cluster_info: whether it gets the cluster's entry, in the variable KUBERNETES_EXEC_INFO.
        interactive_mode: `Never`, `IfAvailable` or `Always`: whether it may ask the user.
    """

    command: str = ""
    args: list[str] | None = None
    env: list[Variable] | None = None
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class Extension(msgspec.Struct, frozen=True):
    """`clusters[].cluster.extensions[]`: data for a credential plugin, by name."""

    name: str = ""
    extension: Any = None


class KubeconfigCluster(msgspec.Struct, rename="kebab", frozen=True):
    """`clusters[].cluster`: an API server; `*_data` are in base64, and precede the file of the same name."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[Extension] | None = None


class KubeconfigUser(msgspec.Struct, rename="kebab", frozen=True):
    """`users[].user`: credentials: a certificate, a token, a token file or a program; `as_*`: whom to impersonate.

    `username`, `password` and `auth_provider` are read only to reject them.
    """

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    as_user: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None


class Context(msgspec.Struct, frozen=True):
    """`contexts[].context`: the names of a cluster and a user, and the default namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct, frozen=True):
    """`clusters[]`: a cluster with its name."""

    name: str
    cluster: KubeconfigCluster | None = None


class NamedUser(msgspec.Struct, frozen=True):
    """`users[]`: a user with its name."""

    name: str
    user: KubeconfigUser | None = None


class NamedContext(msgspec.Struct, frozen=True):
    """`contexts[]`: a context with its name."""

    name: str
    context: Context | None = None


class KubeconfigFile(msgspec.Struct, rename="kebab", frozen=True):
    """A kubeconfig; a section is None if the file does not have it."""

    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


def parse(path: Path, content: bytes) -> KubeconfigFile:
    """The kubeconfig in a file's content (YAML; may be empty); `path` is for messages. Raises UsageError."""
    try:
        return msgspec.convert(yaml.safe_load(content) or {}, KubeconfigFile)
    except yaml.YAMLError as error:
        raise UsageError(f"kubeconfig {path}: not valid YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"kubeconfig {path}: {error}") from error


def read_file(path: Path, description: str) -> bytes:
    """The bytes of a file; `~` is the home folder. Raises UsageError, which begins with `description` and the path."""
    try:
        return expand_home(path, description).read_bytes()
    except OSError as error:
        raise UsageError(f"{description} {path}: {error.strerror}") from error


def expand_home(path: Path, description: str) -> Path:
    """The path with the home folder in place of `~` or `~USER`. Raises UsageError as `read_file`."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise UsageError(f"{description} {path}: {error}") from error
