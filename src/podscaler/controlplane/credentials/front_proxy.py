"""Creates the client certificate with which the API server, as a front proxy, forwards requests to extension servers.

An extension API server (APIService) that trusts this certificate believes the user name in the headers X-Remote-User
and X-Remote-Group. So its certificate authority (CA) is a separate one that signs nothing else. `cli.up` calls
`ensure` in a thread.

Source: the documentation of the aggregation layer (`--proxy-client-cert-file`, `--requestheader-client-ca-file`).
"""

from dataclasses import dataclass
from pathlib import Path

from podscaler.controlplane.credentials import certificates

USER_NAME = "front-proxy-client"


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The credentials of the API server as a front proxy.

    Attributes:
        authority_pem: the CA's certificate.
        client_path: a PEM file with the key and the client certificate (0600).
    """

    authority_pem: bytes
    client_path: Path


def ensure(folder: Path, *, now_ns: int) -> FrontProxy:
    """The credentials in `folder`, created or renewed as needed. Blocks.

    Args:
        folder: for `ca.pem` and `client.pem`, each key and certificate in one file (0600).
        now_ns: the wall clock.

    Raises:
        UsageError: the files cannot be read or written, or hold no key and certificate.
    """
    authority_pem = certificates.authority_of(folder, now_ns=now_ns)
    client_path = folder / "client.pem"
    certificates.ensure_client(client_path, USER_NAME, (), now_ns=now_ns)
    return FrontProxy(authority_pem, client_path)
