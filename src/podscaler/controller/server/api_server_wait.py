"""Waits for the API server at the start, and gives up on errors that waiting cannot resolve.

`podscaler controller` calls `wait_for_server` before it starts. Errors that may resolve are logged once, and the
request is repeated: a server that does not respond or is busy, a name that does not resolve yet, credentials that a
program or a file renews. A missing permission does not count: it may be granted later. An error that needs another
command line or kubeconfig is a UsageError: a server whose certificate is not trusted, a static token that is rejected,
no autoscaling/v2. A further error that waiting cannot resolve: in `_may_resolve`, with its text in `failure_sentence`.
"""

import logging
import random

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError, UsageError
from podscaler.kube.client.client import Client
from podscaler.kube.transport.backoff import Backoff
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.transport import TransportError

log = logging.getLogger(__name__)

AUTOSCALERS = "/apis/autoscaling/v2/horizontalpodautoscalers"
SUBJECT = "horizontalpodautoscalers.autoscaling"
TIMEOUT_S = 10.0
NOT_TRUSTED = "tls: failed to verify certificate"
"""The beginning of `TransportError.cause` for a certificate that is not trusted."""


async def wait_for_server(client: Client, config: Config, clock: Clock, *, rng: random.Random | None = None) -> None:
    """Return once the server responds and accepts the credentials; permissions may be missing.

    Args:
        config: of the client, for messages.
        rng: for the jitter of the waits; None: a new one.

    Raises:
        UsageError: a sentence with the error that waiting cannot resolve, and what to change.
    """
    backoff, logged_message = Backoff(rng or random.Random()), ""
    while (failure := await _find_failure(client)) is not None:
        message = failure_sentence(failure, config)
        if not _may_resolve(failure, config):
            raise UsageError(message)
        log.log(logging.DEBUG if message == logged_message else logging.WARNING, "%s; trying again", message)
        logged_message = message
        await clock.sleep(backoff.next_s())
    if logged_message:
        log.info("the API server %s answers", client.server)


def failure_sentence(failure: StatusError, config: Config) -> str:
    """The error as a sentence with the server and the origin of its address."""
    server, origin = config.server, config.origin
    if isinstance(failure, TransportError):
        return f"cannot reach the API server {server} ({origin}): {failure.cause}"
    if failure.code == 401:
        return f"the API server {server} does not accept the credentials of {config.credentials_text}: {failure}"
    if failure.code == 404:
        return f"the API server {server} ({origin}) does not serve autoscaling/v2, which needs Kubernetes 1.23 or newer"
    return f"the API server {server} ({origin}) cannot list horizontalpodautoscalers: {failure}"


async def _find_failure(client: Client) -> StatusError | None:
    """The error of a list of autoscalers; None if it succeeds or is forbidden."""
    try:
        await client.get(AUTOSCALERS, subject=SUBJECT, query=[("limit", "1")], timeout_s=TIMEOUT_S)
    except StatusError as error:
        return None if error.code == 403 else error
    return None


def _may_resolve(failure: StatusError, config: Config) -> bool:
    """Whether the error may go away without a change of the command line or the kubeconfig (401, 429, 5xx)."""
    if isinstance(failure, TransportError):
        return not failure.cause.startswith(NOT_TRUSTED)
    if failure.code == 401:
        return config.renews_credentials
    is_undecodable = failure.code == 0  # a response that is not the API server's, as of a proxy
    return failure.code == 429 or failure.code >= 500 or is_undecodable
