"""Flags of `podscaler controller` for more than one of it: leader election and shards.

`podscaler.cli.options.controller` puts `election_options` on its command, and runs its controller through `Elected`.

Source: the `--leader-elect-*` flags of kube-controller-manager, with their defaults; `--shards` is our own.
"""

import asyncio
import logging
import random
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import click

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import UsageError
from podscaler.cli.options import lease_options
from podscaler.cli.options.settings import DURATION, INT32, Flag
from podscaler.controller.controller import Controller
from podscaler.controller.leaderelection import timeouts
from podscaler.controller.leaderelection.election import Election, Timing
from podscaler.controller.leaderelection.fence import FencedTransport
from podscaler.controller.leaderelection.leadership import Leadership
from podscaler.controller.leaderelection.sharding import Sharding
from podscaler.controller.leaderelection.telemetry import ElectionMetrics, ShardMetrics
from podscaler.controller.options import installation
from podscaler.controller.server.permissions import Permission, of_leases
from podscaler.kube.client.client import Client

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

PREFIX = "leader-elect"
SHARDS_MAX = 256
LOCK = "leases"


def parse_lock(text: str) -> str:
    """The kind of object that is held. Raises ValueError."""
    if text != LOCK:
        raise ValueError(f'must be "{LOCK}"')
    return text


OPTIONS = (
    click.option(
        f"--{PREFIX}",
        type=click.BOOL,
        is_flag=False,
        flag_value="true",
        default="true",
        show_default=True,
        help="work only while holding a Lease, so that of several controllers one works",
    ),
    click.option(
        f"--{PREFIX}-lease-duration",
        type=DURATION,
        default="15s",
        show_default=True,
        help="how long the others wait after the last renewal that they saw",
    ),
    click.option(
        f"--{PREFIX}-renew-deadline",
        type=DURATION,
        default="10s",
        show_default=True,
        help="how long after its last renewal the holder goes on, and tries to renew",
    ),
    click.option(
        f"--{PREFIX}-retry-period", type=DURATION, default="2s", show_default=True, help="the wait between two tries"
    ),
    click.option(
        f"--{PREFIX}-resource-lock",
        type=Flag("kind", parse_lock),
        default=LOCK,
        show_default=True,
        help="the kind of object that is held",
    ),
    *lease_options.OPTIONS,
    click.option(
        "--shards",
        type=INT32,
        default="0",
        show_default=True,
        help="split the namespaces into so many shards, which all controllers that are there divide among them; "
        "0: one controller does everything",
    ),
)


def election_options(command: F) -> F:
    """`command` with the flags; give what they set to `parse_election`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def parse_election(options: Mapping[str, Any]) -> Election | None:
    """What is elected, by the values of `election_options` (by click's names); None: nothing. Raises UsageError."""
    shards = options["shards"]
    if not 0 <= shards <= SHARDS_MAX:
        raise UsageError(f"--shards must be from 0 to {SHARDS_MAX}, but got {shards}")
    timing = Timing(
        lease_duration_s=options["leader_elect_lease_duration"] / NANOSECONDS,
        renew_deadline_s=options["leader_elect_renew_deadline"] / NANOSECONDS,
        retry_period_s=options["leader_elect_retry_period"] / NANOSECONDS,
    )
    if not options["leader_elect"]:
        if shards:
            raise UsageError("--shards needs leases, which --leader-elect=false does without")
        return None
    name, namespace = options["leader_elect_resource_name"], options["leader_elect_resource_namespace"]
    return Election(name=name, namespace=namespace, timing=timing, shards=shards)


def field_manager(elected: Election | None) -> str:
    """Of the writes of a controller that elects like that, or takes no Lease."""
    if elected is None:
        return installation.of_host(socket.gethostname())
    return installation.of_lease(elected.namespace, elected.name)


class Working(Protocol):
    """A controller as the command runs it, alone or among others.

    Attributes:
        client: one that may be used before anything else, and writes reviews.
        permissions: what is needed besides the controller's own.
    """

    client: Client
    permissions: Sequence[Permission]

    def fault(self) -> str:
        """What /healthz has to say; empty where all is well."""
        ...

    def stop(self) -> None:
        """Make `run` end in good order."""
        ...

    async def stopped(self) -> None:
        """Return once `stop` was called."""
        ...

    async def run(self) -> None:
        """Work until `stop` is called."""
        ...


class NoElection:
    """A controller that takes no lease.

    Args:
        controller: not started yet.
        client: the controller's.
    """

    def __init__(self, controller: Controller, client: Client) -> None:
        self._controller = controller
        self.client = client
        self.permissions: Sequence[Permission] = ()

    def fault(self) -> str:
        """Nothing can be wrong."""
        return ""

    def stop(self) -> None:
        """As Working."""
        self._controller.stop()

    async def stopped(self) -> None:
        """As Working."""
        await self._controller.stopped()

    async def run(self) -> None:
        """As Working."""
        await self._controller.run()


class Elected:
    """A controller that works while it holds leases.

    Args:
        controller: not started yet.
        client: the controller's, on which nothing is written from now on without a lease.
        leases: another client of the same server, for the leases.
        elected: what is elected.
        clock: this machine's.
    """

    def __init__(
        self, controller: Controller, client: Client, *, leases: Client, elected: Election, clock: Clock
    ) -> None:
        self._controller = controller
        self._stopping = asyncio.Event()
        self._failure = ""
        self.client = leases
        self.permissions: Sequence[Permission] = of_leases(
            elected.namespace, elected.name, is_sharded=elected.shards > 0
        )
        registry, rng = controller.telemetry.registry, random.Random()
        telemetry = ElectionMetrics(registry)
        self._share: Leadership | Sharding
        if elected.shards:
            figures = ShardMetrics(registry)
            self._share = Sharding(leases, elected, clock=clock, rng=rng, telemetry=telemetry, figures=figures)
        else:
            self._share = Leadership(leases, elected, clock=clock, rng=rng, telemetry=telemetry)
        controller.health.observe(leases)
        client.look_on(lambda transport: FencedTransport(transport, self._share.weakest))
        controller.assignment.set_ownership(self._share)

    def stop(self) -> None:
        """Make `run` end, after a hand-over in good order."""
        self._stopping.set()
        self._share.stop()

    async def stopped(self) -> None:
        """Return once `stop` was called."""
        await self._stopping.wait()

    def fault(self) -> str:
        """What is wrong with the election or the controller; empty where nothing is."""
        return self._failure or self._share.fault()

    async def run(self) -> None:
        """Work until `stop` is called: first what was held is handed over, then the controller ends.

        Raises what fails in the election or the controller, which is a bug; leases are given back by then.
        """
        working = asyncio.ensure_future(self._controller.run())
        electing = asyncio.ensure_future(self._share.run(self._controller.assignment))
        try:
            await asyncio.wait((working, electing), return_when=asyncio.FIRST_COMPLETED)
            if working.done() and not working.cancelled() and (error := working.exception()) is not None:
                self._failure = f"the controller failed: {error!r}"
            self._share.stop()
            await asyncio.wait((electing,))
            self._controller.stop()
            await working
            electing.result()
        finally:
            await timeouts.end(electing, working)
