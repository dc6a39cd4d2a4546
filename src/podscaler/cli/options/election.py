"""Defines the flags of leader election and shards, and runs the controller of `podscaler controller` under leases.

`podscaler.cli.commands.controller` puts `election_options` on its command, and runs its controller by an
ElectedController or, without leases, by an UnelectedController, which has the same methods. A new flag: an option of
`election_options`, its value in `parse_election`, and an attribute of `Election` or `Timing`.

Source: the `--leader-elect-*` flags of kube-controller-manager, with their defaults; `--shards` is our own.
"""

import asyncio
import logging
import random
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import click

from podscaler.base.clock import NANOSECONDS, Clock
from podscaler.base.errors import UsageError
from podscaler.cli.options import lease_options
from podscaler.cli.options.flags import DURATION, INT32, FlagType, Option, flag_group
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

PREFIX = "leader-elect"
SHARDS_MAX = 256
LOCK_KIND = "leases"


def parse_lock(lock_kind: str) -> str:
    """The kind of lock objects, which must be `leases`; upstream once had others. Raises ValueError."""
    if lock_kind != LOCK_KIND:
        raise ValueError(f'must be "{LOCK_KIND}"')
    return lock_kind


election_options = flag_group(
    click.option(
        f"--{PREFIX}",
        type=click.BOOL,
        is_flag=False,
        flag_value="true",  # of `--leader-elect` without a value
        default="true",
        show_default=True,
        help="work only while holding a Lease, so that of several controllers one works",
    ),
    Option(
        f"{PREFIX}-lease-duration",
        DURATION,
        "15s",
        "how long the others wait after the last renewal that they observed",
    ),
    Option(
        f"{PREFIX}-renew-deadline",
        DURATION,
        "10s",
        "how long after its last renewal the holder writes, and tries to renew",
    ),
    Option(f"{PREFIX}-retry-period", DURATION, "2s", "the wait between two attempts"),
    Option(f"{PREFIX}-resource-lock", FlagType("kind", parse_lock), LOCK_KIND, "the kind of lock objects"),
    lease_options.lease_options,
    Option(
        "shards",
        INT32,
        "0",
        "split the namespaces into so many shards, which all running controllers divide among them; "
        "0: one controller does everything",
    ),
)
"""Puts the flags on a command; give what they set to `parse_election`."""


def parse_election(options: Mapping[str, Any]) -> Election | None:
    """The election for values of `election_options` (by click's names); None if no lease is used. Raises UsageError."""
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


def field_manager(election: Election | None) -> str:
    """The field manager of a controller with that election; None: named for this host."""
    if election is None:
        return installation.of_host(socket.gethostname())
    return installation.of_lease(election.namespace, election.name)


class UnelectedController:
    """Runs a controller that takes no lease.

    Args:
        controller: the controller, not started yet.

    Attributes:
        client: used for requests before the controller runs.
        permissions: permissions that are needed besides the controller's own.
    """

    def __init__(self, controller: Controller, client: Client) -> None:
        self._controller = controller
        self.client = client
        self.permissions: Sequence[Permission] = ()

    def fault(self) -> str:
        """Why /healthz fails, which never happens here: the empty text."""
        return ""

    def stop(self) -> None:
        """Make `run` return after the running syncs."""
        self._controller.stop()

    async def stopped(self) -> None:
        """Return once `stop` was called."""
        await self._controller.wait_stopped()

    async def run(self) -> None:
        """Manage autoscalers until `stop` is called."""
        await self._controller.run()


class ElectedController:
    """Runs a controller that works while it holds leases.

    Args:
        controller: the controller, not started yet; its health covers `lease_client` from now on.
        client: the controller's client; from now on it writes only under a lease.
        lease_client: another client of the same server, for the leases.
        election: the name and timing of the election, and the number of shards.

    Attributes:
        client: `lease_client`, which is used for requests before the controller runs.
        permissions: permissions that are needed besides the controller's own.
    """

    def __init__(
        self, controller: Controller, client: Client, *, lease_client: Client, election: Election, clock: Clock
    ) -> None:
        self._controller = controller
        self._stopping = asyncio.Event()
        self._failure = ""
        self.client = lease_client
        self.permissions: Sequence[Permission] = of_leases(
            election.namespace, election.name, is_sharded=election.shards > 0
        )
        registry, rng = controller.telemetry.registry, random.Random()
        telemetry = ElectionMetrics(registry)
        self._ownership: Leadership | Sharding
        if election.shards:
            self._ownership = Sharding(
                lease_client, election, clock=clock, rng=rng, telemetry=telemetry, shard_metrics=ShardMetrics(registry)
            )
        else:
            self._ownership = Leadership(lease_client, election, clock=clock, rng=rng, telemetry=telemetry)
        controller.health.observe(lease_client)
        client.wrap_transport(lambda transport: FencedTransport(transport, self._ownership.weakest))
        controller.assignment.set_ownership(self._ownership)

    def stop(self) -> None:
        """Make `run` end, after the leases are handed over."""
        self._stopping.set()
        self._ownership.stop()

    async def stopped(self) -> None:
        """Return once `stop` was called."""
        await self._stopping.wait()

    def fault(self) -> str:
        """Why the election or the controller failed; the empty text where neither did."""
        return self._failure or self._ownership.fault()

    async def run(self) -> None:
        """Work until `stop` is called: the leases are handed over, then the controller ends.

        Raises any exception of the election or the controller, which is a bug; the leases are released by then.
        """
        controller_task = asyncio.ensure_future(self._controller.run())
        election_task = asyncio.ensure_future(self._ownership.run(self._controller.assignment))
        try:
            await asyncio.wait((controller_task, election_task), return_when=asyncio.FIRST_COMPLETED)
            has_ended = controller_task.done() and not controller_task.cancelled()
            if has_ended and (error := controller_task.exception()) is not None:
                self._failure = f"the controller failed: {error!r}"
            self._ownership.stop()
            await asyncio.wait((election_task,))  # does not raise its exception yet
            self._controller.stop()
            await controller_task
            election_task.result()  # raises what the election raised
        finally:
            await timeouts.end(election_task, controller_task)


ControllerRunner = UnelectedController | ElectedController
"""A controller as the command runs it."""
