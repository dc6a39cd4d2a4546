"""How to reach one API server: address, trust and credentials, complete and checked.

`config.locate` makes it from a kubeconfig or from inside a cluster; `transport.transport` takes it. Nothing of it is
looked up later, except a token that others renew. Secrets do not show in its `repr`.
"""

from dataclasses import dataclass, field

from podscaler.kube.transport.credentials import ClientCertificates, Credentials, NoCredentials, StaticHeader, TokenFile


@dataclass(frozen=True, slots=True)
class Config:
    """One API server, and who we are to it.

    Attributes:
        server: `https://host:port`, without a slash at the end; may have a path.
        credentials: where the Authorization header comes from.
        ca_pem: the certificates that the server's must be signed by; None: the machine's own list.
        client_certificate_pem, client_key_pem: both or neither.
        certificates: where client certificates come from that change while the program runs.
        verify: False leaves the server's certificate unchecked.
        tls_server_name: the name that the certificate must have, where it is not the host's.
        proxy: the URL of what to go through (`http`, `https` or `socks5`; may hold a password).
        compression: whether large answers may come compressed.
        headers: sent with every request, in order (impersonation).
        namespace: the context's; `default` where it names none.
        origin: for messages: the file and context that this came from.
    """

    server: str
    credentials: Credentials = field(default_factory=NoCredentials)
    ca_pem: bytes | None = field(default=None, repr=False)
    client_certificate_pem: bytes | None = field(default=None, repr=False)
    client_key_pem: bytes | None = field(default=None, repr=False)
    certificates: ClientCertificates | None = None
    verify: bool = True
    tls_server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    compression: bool = True
    headers: tuple[tuple[str, str], ...] = ()
    namespace: str = "default"
    origin: str = "the given configuration"

    @property
    def caller(self) -> str:
        """Who we are to the server, for messages: the origin, and the kind of credentials, without any secret."""
        return f"{self.origin} ({self._credential_kind})"

    @property
    def _credential_kind(self) -> str:
        match self.credentials:
            case StaticHeader():
                return "a bearer token"
            case TokenFile() as file:
                return f"the token in {file.path}"
            case NoCredentials():
                is_certified = self.certificates is not None or self.client_certificate_pem is not None
                return "a client certificate" if is_certified else "no credentials"
        return "a credential plugin"

    @property
    def renews_credentials(self) -> bool:
        """Whether credentials may change while the program runs, so that a refusal may heal."""
        return self.certificates is not None or not isinstance(self.credentials, NoCredentials | StaticHeader)
