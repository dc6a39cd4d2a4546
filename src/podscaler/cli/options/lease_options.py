"""Defines the flags for name and namespace of the Leases of `podscaler controller`.

`podscaler.cli.options.election` and `podscaler.cli.explain.explain` put them on their commands.

Source: `--leader-elect-resource-name` and `-namespace` of kube-controller-manager.
"""

from podscaler.api.machinery import names
from podscaler.cli.options.flags import NAMESPACE, FlagType, Option, flag_group
from podscaler.controller.leaderelection import lease

NAME_FLAG = "leader-elect-resource-name"
NAMESPACE_FLAG = "leader-elect-resource-namespace"


def parse_name(lease_name: str) -> str:
    """The name of a Lease. Raises ValueError."""
    if errors := names.dns_subdomain_errors(lease_name):
        raise ValueError(errors[0])
    return lease_name


lease_options = flag_group(
    Option(
        NAME_FLAG,
        FlagType("name", parse_name),
        lease.NAME,
        "the Lease, and the beginning of the names of those of shards",
    ),
    Option(NAMESPACE_FLAG, NAMESPACE, lease.NAMESPACE, "of the Leases"),
)
"""Puts the flags on a command."""
