"""A client of one API server as programs use it: real connections, spread retries, lists as events.

The command line and whatever runs for long opens its client here; tests put a Client on a scripted transport.
"""

import random

from podscaler.base.clock import Clock
from podscaler.kube.client.client import Client
from podscaler.kube.transport import http_transport
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.rate_limit import TokenBucket
from podscaler.kube.transport.read_only import ReadOnlyTransport
from podscaler.kube.transport.transport import Transport


async def open_client(config: Config, clock: Clock, *, user_agent: str, limit: TokenBucket | None = None) -> Client:
    """A client; no connection is made yet, and the caller closes it.

    Args:
        config: the server, and who we are.
        clock: for waits.
        user_agent: what we call ourselves.
        limit: how often requests may go out; None: as often as they come.

    Raises:
        UsageError: for certificates that cannot be used.
    """
    return _client(config, await http_transport.connect(config, user_agent=user_agent), clock, limit)


async def open_reader(config: Config, clock: Clock, *, user_agent: str, limit: TokenBucket | None = None) -> Client:
    """As `open_client`, a client whose attempts to write fail without being sent."""
    transport = ReadOnlyTransport(await http_transport.connect(config, user_agent=user_agent))
    return _client(config, transport, clock, limit)


def _client(config: Config, transport: Transport, clock: Clock, limit: TokenBucket | None) -> Client:
    return Client(transport, clock, limit=limit, rng=random.Random(), streams_lists=True, caller=config.caller)
