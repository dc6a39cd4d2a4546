"""Builds and writes the kubeconfig files with which kubectl and the autoscaler reach the control plane.

`cli.up` calls it in a thread. The files hold credentials: they are written with mode 0600. Another credential needs a
function beside `certificate_document`.
"""

import base64
import json
from pathlib import Path
from typing import Any

from podscaler.api.text import json_text, yaml_text
from podscaler.base.errors import UsageError
from podscaler.controlplane.credentials import secret_files
from podscaler.controlplane.credentials.certificates import ClientPair

ENTRY_NAME = "podscaler"
"""The name of the cluster, the user and the context in the file."""


def token_document(*, server_url: str, authority_pem: bytes, token: str) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user and one context that names both.

    Args:
        server_url: `https://127.0.0.1:6443`.
        authority_pem: the certificate (PEM) of the authority that signed the server's certificate.
        token: the user's bearer token.
    """
    return _document(server_url, authority_pem, {"token": token})


def certificate_document(*, server_url: str, authority_pem: bytes, pair: ClientPair) -> dict[str, Any]:
    """A kubeconfig as by `token_document`, whose user has a client certificate in place of a token."""
    parts = {"client-certificate-data": pair.certificate_pem, "client-key-data": pair.key_pem}
    return _document(server_url, authority_pem, {name: _base64(pem) for name, pem in parts.items()})


def _document(server_url: str, authority_pem: bytes, user: dict[str, Any]) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user and one context."""
    cluster = {"server": server_url, "certificate-authority-data": _base64(authority_pem)}
    context = {"cluster": ENTRY_NAME, "user": ENTRY_NAME, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": ENTRY_NAME, "cluster": cluster}],
        "users": [{"name": ENTRY_NAME, "user": user}],
        "contexts": [{"name": ENTRY_NAME, "context": context}],
        "current-context": ENTRY_NAME,
    }


def _base64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def write(path: Path, config: dict[str, Any]) -> None:
    """Write `config` to `path` (mode 0600), as JSON, which is valid YAML. Blocks.

    Raises UsageError if the file cannot be written, or exists with other clusters than `ENTRY_NAME`.
    """
    existing = secret_files.read(path)
    if existing is not None and existing.strip() and not _has_own_cluster(existing):
        raise UsageError(f"{path} holds something else, which would be lost: name another file for the kubeconfig")
    secret_files.write(path, json.dumps(config, indent=2).encode() + b"\n")


def _has_own_cluster(content: bytes) -> bool:
    """Whether a file has no cluster but `ENTRY_NAME`; kubectl may have rewritten it, for example to set a namespace."""
    try:
        clusters = yaml_text.parse(content).value["clusters"]
        return [cluster["name"] for cluster in clusters] == [ENTRY_NAME]
    except (json_text.DecodeError, TypeError, KeyError):
        return False
