"""Defines the settings of the connection to Prometheus: address, authorities, credentials and headers.

The command line makes PrometheusSettings from its flags; `to_config` makes the configuration of a transport of
`kube.transport` from them, which sends the requests. No secret is in a message or a `repr`: a password in the URL
becomes a header.

Source: prometheus-adapter v0.12.0 (its flags `--prometheus-...`). Differs: a token file is read again every minute, and
redirects are not followed, so that headers reach no other server.
"""

import base64
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError
from podscaler.kube.client import urls
from podscaler.kube.transport import proxies
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import Credentials, NoCredentials, StaticHeader, TokenFile

BODY_MAX_BYTES = 64 << 20
"""The longest response of Prometheus: a million series of 64 bytes."""


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """The values of the flags.

    Attributes:
        url: Prometheus' URL; may have a path, a user and a password.
        ca_file: the authorities of Prometheus' certificate; None: the machine's authorities.
        certificate_file, key_file: the client certificate and its key; both or neither.
        token_file: the file with the bearer token; None if no token is sent.
        headers: names and values of headers that are sent with each request.
        cluster: the connection of an API server whose credentials and authorities are used; None if no API server is
            involved.
    """

    url: str = field(repr=False)
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    token_file: Path | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cluster: Config | None = None


def to_config(settings: PrometheusSettings, clock: Clock) -> Config:
    """The configuration of a transport. Blocks: reads the files. Raises UsageError."""
    server, userinfo = _parse_url(settings.url)
    if (settings.certificate_file is None) != (settings.key_file is None):
        raise UsageError("--prometheus-client-tls-cert-file and --prometheus-client-tls-key-file go together")
    cluster = settings.cluster or Config(server)
    has_certificate = settings.certificate_file is not None
    return Config(
        server=server,
        credentials=_credentials(settings, userinfo, cluster, clock),
        ca_pem=_read_file(settings.ca_file, "--prometheus-ca-file") or cluster.ca_pem,
        client_certificate_pem=_read_file(settings.certificate_file, "--prometheus-client-tls-cert-file")
        or cluster.client_certificate_pem,
        client_key_pem=_read_file(settings.key_file, "--prometheus-client-tls-key-file") or cluster.client_key_pem,
        certificates=None if has_certificate else cluster.certificates,
        verify=cluster.verify or settings.ca_file is not None,
        proxy=proxies.from_environment(server),
        headers=settings.headers,
        body_max_bytes=BODY_MAX_BYTES,
        origin="--prometheus-url",
    )


def _parse_url(url: str) -> tuple[str, str]:
    """The URL without user and password and without a slash at its end, and these two. Raises UsageError."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UsageError("--prometheus-url is not a URL such as https://prometheus.monitoring.svc:9090")
    userinfo, _, host = parts.netloc.rpartition("@")
    server = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
    if error := urls.address_error(server):
        raise UsageError(f"--prometheus-url: {error}")
    return server, userinfo


def _credentials(settings: PrometheusSettings, userinfo: str, cluster: Config, clock: Clock) -> Credentials:
    """The first that is configured: the token file, the URL's user and password, the cluster's credentials; or none."""
    if settings.token_file is not None:
        return TokenFile(settings.token_file, clock)
    if userinfo:
        return StaticHeader(f"Basic {base64.b64encode(unquote(userinfo).encode()).decode()}")
    return cluster.credentials if settings.cluster is not None else NoCredentials()


def _read_file(path: Path | None, flag: str) -> bytes | None:
    """The contents; None if there is no path. Raises UsageError."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{flag} {path}: {error.strerror or error}") from error
