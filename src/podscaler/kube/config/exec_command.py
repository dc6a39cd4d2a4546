"""Builds the command of an exec credential plugin (`users[].user.exec` of a kubeconfig), and parses its output.

`config.kubeconfig` makes a Command; `config.exec_plugin` runs it, without a shell. Example of output:
`{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "..."}}`.

Source: client.authentication.k8s.io/v1 and v1beta1; "client-go credential plugins" of the Kubernetes documentation;
client-go's clientcmd (validation) and plugin/pkg/client/auth/exec.
"""

import base64
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from podscaler.base.clock import NANOSECONDS
from podscaler.base.errors import JSON_DECODE_ERRORS
from podscaler.kube.config.kubeconfig_file import Exec, KubeconfigCluster

GROUP = "client.authentication.k8s.io"
V1 = f"{GROUP}/v1"
API_VERSIONS = (V1, f"{GROUP}/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
CONFIG_EXTENSION = f"{GROUP}/exec"
"""The extension of a kubeconfig's cluster that is passed to the program."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run.

    Attributes:
        program: its path or name.
        arguments: the arguments that follow it.
        environment: variables besides those of this process; may hold secrets.
        api_version: the version of ExecCredential, which the output must have too.
        interactive: whether it may read our standard input, to ask the user.
        install_hint: how to install a missing program, by the kubeconfig.
    """

    program: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    api_version: str
    interactive: bool
    install_hint: str = ""

    def missing_text(self) -> str:
        """The error text if the program does not exist."""
        hint = " ".join(self.install_hint.split())
        return f"executable {self.program} not found" + (f": {hint}" if hint else "; install it, or name its full path")


@dataclass(frozen=True, slots=True)
class Issued:
    """The credentials that a program printed.

    Attributes:
        token: for the Authorization header; None if the program printed no token.
        certificate_pem: client certificate and key, one after the other; None if the program printed no certificate.
        expires_at: their expiry, nanoseconds since the epoch; None if the program stated no expiry.
    """

    token: str | None = field(repr=False)
    certificate_pem: bytes | None = field(repr=False)
    expires_at: int | None


class _Status(msgspec.Struct, rename="camel"):
    """The credentials of an ExecCredential; `expiration_timestamp` is None if they do not expire."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    """The output of a credential command (client.authentication.k8s.io)."""

    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


def build_command(settings: Exec, folder: Path, cluster: Mapping[str, Any] | None) -> Command:
    """The command of a kubeconfig in `folder`.

    `cluster` is passed to the program, as made by `cluster_info`; None if the kubeconfig does not request that. Raises
    ValueError for invalid settings, a missing program, and a program that needs a terminal where there is none.
    """
    _check_settings(settings)
    interactive = _is_interactive(settings.interactive_mode)
    exec_info = {
        "kind": "ExecCredential",
        "apiVersion": settings.api_version,
        "spec": ({} if cluster is None else {"cluster": cluster}) | {"interactive": interactive},
    }
    plugin_command = Command(
        program=_program(settings.command, folder),
        arguments=tuple(settings.args or ()),
        environment={variable.name: variable.value for variable in settings.env or ()}
        | {"KUBERNETES_EXEC_INFO": msgspec.json.encode(exec_info).decode()},
        api_version=settings.api_version,
        interactive=interactive,
        install_hint=settings.install_hint,
    )
    if (
        shutil.which(plugin_command.program, path=plugin_command.environment.get("PATH", os.environ.get("PATH")))
        is None
    ):
        raise ValueError(plugin_command.missing_text())
    return plugin_command


def cluster_info(cluster: KubeconfigCluster, ca_pem: bytes | None) -> dict[str, Any]:
    """`spec.cluster` of the ExecCredential for the program, JSON-ready; empty fields are left out."""
    # reversed: of extensions with the same name the first counts
    extensions = {extension.name: extension.extension for extension in reversed(cluster.extensions or ())}
    fields = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(ca_pem).decode() if ca_pem else "",
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": extensions.get(CONFIG_EXTENSION),
    }
    return {name: field for name, field in fields.items() if field}


def parse_output(output: bytes, api_version: str) -> Issued:
    """The credentials in the program's standard output. Raises ValueError, whose text quotes no credentials."""
    try:
        credential = msgspec.json.decode(output, type=_ExecCredential)
    except JSON_DECODE_ERRORS as error:
        raise ValueError("exec plugin: standard output is not an ExecCredential in JSON") from error
    if credential.api_version != api_version or credential.kind != "ExecCredential":
        returned = f"{credential.api_version or 'no version'} of {credential.kind or 'no kind'}"
        raise ValueError(
            f"exec plugin is configured to use {api_version} of ExecCredential, plugin returned {returned}"
        )
    if credential.status is None:
        raise ValueError("exec plugin didn't return a status field")
    return _issued_credentials(credential.status)


def _issued_credentials(status: _Status) -> Issued:
    """The credentials in the status of an ExecCredential. Raises ValueError for none, and for an incomplete pair."""
    certificate, key = status.client_certificate_data, status.client_key_data
    if not (status.token or certificate or key):
        raise ValueError("exec plugin didn't return a token or cert/key pair")
    if bool(certificate) != bool(key):
        raise ValueError("exec plugin returned only certificate or key, not both")
    pem = f"{certificate}\n{key}".encode() if certificate else None
    return Issued(status.token or None, pem, _parse_expiry(status.expiration_timestamp))


def _parse_expiry(expiry_text: str | None) -> int | None:
    """An RFC 3339 time in nanoseconds since the epoch, without the fraction of the second. None if there is none.

    Raises ValueError.
    """
    if not expiry_text:
        return None
    try:
        expiry = datetime.fromisoformat(expiry_text)
        if expiry.tzinfo is None:
            raise ValueError("no zone")
    except ValueError as error:
        raise ValueError(
            f'exec plugin returned expirationTimestamp "{expiry_text}", which is no RFC 3339 time'
        ) from error
    return int(expiry.timestamp()) * NANOSECONDS


def _check_settings(settings: Exec) -> None:
    """Raise ValueError for settings that client-go does not accept."""
    if not settings.command:
        raise ValueError("command must be specified")
    if settings.api_version not in API_VERSIONS:
        raise ValueError(f'apiVersion "{settings.api_version}" is not one of {", ".join(API_VERSIONS)}')
    if any(not variable.name for variable in settings.env or ()):
        raise ValueError("env: the name of each variable must be specified")
    if not settings.interactive_mode and settings.api_version == V1:
        raise ValueError(f"interactiveMode must be specified with {V1}: one of {', '.join(INTERACTIVE_MODES)}")
    if settings.interactive_mode and settings.interactive_mode not in INTERACTIVE_MODES:
        raise ValueError(f'interactiveMode "{settings.interactive_mode}" is not one of {", ".join(INTERACTIVE_MODES)}')


def _is_interactive(mode: str) -> bool:
    """Whether the program gets our standard input: the mode allows it, and it is a terminal. Raises ValueError."""
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not has_terminal:
        raise ValueError("interactiveMode is Always, but standard input is not a terminal")
    return mode != "Never" and has_terminal


def _program(name: str, folder: Path) -> str:
    """The program: a name with a slash is a path relative to the kubeconfig; another one is looked up in PATH."""
    return str(folder / name) if "/" in name else name
