"""Defines the flags for a controller's own endpoints: where /metrics, /healthz and /readyz are served, and how.

`podscaler.cli.commands.controller` puts `endpoint_options` on its command, gives the values to `parse_serving`, and
serves with the result. `podscaler.cli.up.up` has `address_option` alone; `podscaler.cli.up.control_plane` serves. A new
flag: an option of `endpoint_options`, an attribute of Serving, and its value in `parse_serving`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from podscaler.base import supervision
from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError
from podscaler.cli.options.flags import flag_group
from podscaler.controller.server.serving import Endpoints
from podscaler.kube.serving.serving_certificate import ServingCertificate

log = logging.getLogger(__name__)

OFF = "off"
DELEGATED = "delegated"

address_option = click.option(
    "--metrics-bind-address",
    metavar="HOST:PORT",
    default="",
    help="serve the controller's /metrics, /healthz and /readyz there (port 0: a free one); default: nowhere",
)
endpoint_options = flag_group(
    address_option,
    click.option(
        "--tls-cert-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="serve them over HTTPS, with this certificate (read again when it is renewed)",
    ),
    click.option(
        "--tls-private-key-file", type=click.Path(path_type=Path), metavar="FILE", help="the certificate's key"
    ),
    click.option(
        "--metrics-authentication",
        type=click.Choice([OFF, DELEGATED]),
        default=OFF,
        show_default=True,
        help="who may read /metrics: everybody, or users whom the API server authorizes, by bearer token (needs HTTPS)",
    ),
)
"""Puts the flags on a command; give what they set to `parse_serving`."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The address of the endpoints, and how they are served.

    Attributes:
        host, port: the address to listen on.
        certificate_files: the certificate and its key; None: plain HTTP.
        is_delegated: whether the API server authorizes readers of /metrics; the caller of `serve` sees to that.
    """

    host: str
    port: int
    certificate_files: tuple[Path, Path] | None = None
    is_delegated: bool = False


def parse_serving(options: Mapping[str, Any]) -> Serving | None:
    """The values of `endpoint_options` (by click's names); None if nothing is served. Raises UsageError."""
    certificate, key = options["tls_cert_file"], options["tls_private_key_file"]
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert-file and --tls-private-key-file go together")
    is_delegated = options["metrics_authentication"] == DELEGATED
    if is_delegated and certificate is None:
        raise UsageError(
            "--metrics-authentication=delegated needs --tls-cert-file: tokens are not to be sent over plain HTTP"
        )
    bind_address = options["metrics_bind_address"]
    if not bind_address:
        if certificate is not None:
            raise UsageError("--tls-cert-file needs --metrics-bind-address: nothing is served without it")
        return None
    host, port = parse_address(bind_address)
    return Serving(host, port, None if certificate is None else (certificate, key), is_delegated)


def parse_address_option(bind_address: str) -> Serving | None:
    """The value of `address_option`, over plain HTTP; None if nothing is served. Raises UsageError."""
    return Serving(*parse_address(bind_address)) if bind_address else None


def parse_address(bind_address: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; IPv6 addresses may be in brackets, and no host means 0.0.0.0. Raises UsageError."""
    host, colon, port_text = bind_address.rpartition(":")
    if not colon or not (port_text.isascii() and port_text.isdigit()) or int(port_text) > 65535:
        raise UsageError(f'--metrics-bind-address "{bind_address}" is not HOST:PORT')
    return host.strip("[]") or "0.0.0.0", int(port_text)  # noqa: S104 - an empty host means all addresses, as for kube-controller-manager


@asynccontextmanager
async def serve(serving: Serving | None, endpoints: Endpoints, clock: Clock) -> AsyncIterator[None]:
    """Serve within the context; nothing where `serving` is None. Raises UsageError for an unusable address or file."""
    if serving is None:
        yield
        return
    files = serving.certificate_files
    certificate = await asyncio.to_thread(ServingCertificate, *files) if files else None
    context = None if certificate is None else certificate.context
    bound_address = await endpoints.start(serving.host, serving.port, context)
    log.info("serving /metrics, /healthz and /readyz on %s", bound_address)
    renewal_task = None
    if certificate is not None:
        renew = supervision.keep_running("the serving certificate", lambda: certificate.follow(clock), clock)
        renewal_task = asyncio.get_running_loop().create_task(renew)
    try:
        yield
    finally:
        if renewal_task is not None:
            renewal_task.cancel()
        await endpoints.stop()
