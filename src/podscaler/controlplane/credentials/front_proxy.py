"""This server as a front proxy: the certificate with which it vouches for users to other API servers.

Made by the wiring of `up`, in a thread. The authority that signs it vouches for nothing else: whoever it signs for may
name any user to such a server.

Source: the documentation of the aggregation layer (`--proxy-client-cert-file`, `--requestheader-client-ca-file`).
"""

from dataclasses import dataclass
from pathlib import Path

from podscaler.controlplane.credentials import certificates

NAME = "front-proxy-client"


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """What other API servers know this one by.

    Attributes:
        authority_pem: the authority's certificate.
        identity: a PEM file with this server's key and certificate (0600).
    """

    authority_pem: bytes
    identity: Path


def ensure(folder: Path, *, now_ns: int) -> FrontProxy:
    """The front proxy whose authority is kept in `folder`, as its own certificate is until it is about to expire.

    Args:
        folder: for `ca.pem` and `client.pem`, each key and certificate in one file (0600).
        now_ns: the wall clock.

    Raises:
        UsageError: the files cannot be read or written, or hold something else.
    """
    authority_pem = certificates.authority_of(folder, now_ns=now_ns)
    identity = folder / "client.pem"
    certificates.ensure_client(identity, NAME, (), now_ns=now_ns)
    return FrontProxy(authority_pem, identity)
