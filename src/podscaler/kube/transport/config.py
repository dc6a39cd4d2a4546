"""Defines Config, the checked settings for connections to one API server: address, trusted authorities, credentials.

`config.locate` makes a Config from a kubeconfig or from a pod's service account; `transport.http_transport` uses it.
All files are read already, except for tokens and certificates that are renewed. Its `repr` shows no secrets.
"""

from dataclasses import dataclass, field

from podscaler.kube.transport.credentials import ClientCertificates, Credentials, NoCredentials, StaticHeader, TokenFile


@dataclass(frozen=True, slots=True)
class Config:
    """One API server and the credentials for it.

    Attributes:
        server: `https://host:port`, without a slash at the end; may have a path.
        credentials: provides the Authorization header.
        ca_pem: the authorities that may have signed the server's certificate, in PEM; None for the machine's own list.
        client_certificate_pem, client_key_pem: the client certificate and its key; both None if there is none.
        certificates: provides client certificates that change while the program runs; None if the certificate is fixed.
        verify: whether the server's certificate is verified.
        tls_server_name: the name that the certificate must have, if it is not the host's.
        proxy: the proxy's URL (`http`, `https` or `socks5`; may hold a password); None for no proxy.
        compression: whether responses may be compressed.
        headers: sent with every request, in order (impersonation).
        namespace: the namespace of the kubeconfig's context; `default` if it names none.
        body_max_bytes: the longest body of a response that is read whole, decompressed; None if there is no limit.
        origin: the file and context of these settings, for messages.
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
    body_max_bytes: int | None = None
    origin: str = "the given configuration"

    @property
    def credentials_text(self) -> str:
        """The origin and the kind of credentials, for messages; without secrets."""
        return f"{self.origin} ({self._credential_kind})"

    @property
    def _credential_kind(self) -> str:
        """The kind of credentials, for messages."""
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
        """Whether credentials may change while the program runs, so that a request may succeed after a 401."""
        return self.certificates is not None or not isinstance(self.credentials, NoCredentials | StaticHeader)
