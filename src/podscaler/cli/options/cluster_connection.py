"""Defines the flags of the connection to an API server: kubeconfig, context and rate limit.

`podscaler.cli.commands.controller` puts `connection_options` on its command; the commands migrate, dashboard and top
give `parse_connection` the values of `kubeconfig_options` alone. All open their clients with `ConnectionOptions`. A new
flag: an option, a parameter of `parse_connection`, and an attribute of ConnectionOptions.

Differs: kube-controller-manager sends 20 requests a second at most by default; here there is no limit unless one is
given. The server's priority and fairness limits clients.
"""

from dataclasses import dataclass

from podscaler.base.clock import Clock
from podscaler.base.errors import UsageError
from podscaler.cli.options.flags import FLOAT64, INT32, Option, flag_group, kubeconfig_options
from podscaler.kube.client import connect
from podscaler.kube.client.client import Client
from podscaler.kube.config import locate
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.rate_limit import TokenBucket

connection_options = flag_group(
    kubeconfig_options,
    Option("kube-api-qps", FLOAT64, "0", "requests a second to the API server, on average; 0: no limit"),
    Option("kube-api-burst", INT32, "30", "requests that may go out at once, where --kube-api-qps is given"),
)
"""Puts the flags on a command; give what they set to `parse_connection`."""


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """The values of the flags.

    Attributes:
        config: the server and the credentials.
        requests_per_s: the rate limit of requests; 0: no limit.
        burst: how many requests may be sent at once where there is a limit.
    """

    config: Config
    requests_per_s: float
    burst: int

    async def open_client(self, clock: Clock, *, user_agent: str) -> Client:
        """A client with a rate limit of its own; the caller closes it. Raises UsageError for unusable certificates."""
        return await connect.open_client(self.config, clock, user_agent=user_agent, limit=self._new_limit(clock))

    async def open_reader(self, clock: Clock, *, user_agent: str) -> Client:
        """A client that cannot write; otherwise as `open_client`."""
        return await connect.open_reader(self.config, clock, user_agent=user_agent, limit=self._new_limit(clock))

    def _new_limit(self, clock: Clock) -> TokenBucket | None:
        """The rate limit of a client; None if there is none."""
        return TokenBucket(self.requests_per_s, self.burst, clock) if self.requests_per_s > 0 else None


def parse_connection(
    *, kubeconfig: str | None, context: str | None, kube_api_qps: float = 0.0, kube_api_burst: int = 30
) -> ConnectionOptions:
    """The connection for values of the flags; reads the kubeconfig. Raises UsageError."""
    if kube_api_qps > 0 and kube_api_burst < 1:
        raise UsageError(f"--kube-api-burst must be greater than 0, but got {kube_api_burst}")
    return ConnectionOptions(locate.find_config(kubeconfig, context), kube_api_qps, kube_api_burst)
