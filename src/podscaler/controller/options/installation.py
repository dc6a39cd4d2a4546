"""Defines the identity of an installation of podscaler: the field manager of its controllers' writes.

The command names its client by `user_agent`, whose first word the API server stores in metadata.managedFields;
`podscaler.controller.informers.other_controllers` takes every other manager for another controller. Rules:

1. Controllers that elect by the same Lease are one installation: the Lease decides which of them writes. With the
   default Lease, which the command, the chart and the manifests share, its manager is `podscaler`.
2. Another Lease makes another installation; its manager has a hash of the Lease's namespace and name.
3. A controller without a Lease (`--leader-elect=false`) is an installation of its own, by the name of its host: it is
   the same after a restart. The autoscaler of `podscaler up` is `podscaler-up`.

Source: docs/decisions/installations.md.
"""

import hashlib
import sys

from podscaler.base.version import __version__
from podscaler.controller.leaderelection import lease

MANAGER = "podscaler"
"""The field manager with the default Lease."""
MIGRATION = f"{MANAGER}-migrate"
"""The field manager of `podscaler migrate`, which is no controller."""
UP = f"{MANAGER}-up"
"""The field manager of the autoscaler of `podscaler up`."""


def of_lease(namespace: str, name: str) -> str:
    """The field manager of the controllers that elect by that Lease."""
    if (namespace, name) == (lease.NAMESPACE, lease.NAME):
        return MANAGER
    return f"{MANAGER}-{_short_hash(f'{namespace}/{name}')}"


def of_host(host: str) -> str:
    """The field manager of a controller that takes no Lease, on the host of that name."""
    return f"{MANAGER}-alone-{_short_hash(host)}"


def user_agent(manager: str) -> str:
    """The User-Agent `podscaler/1.2 (linux) ...`: API servers take the text before the slash as the field manager."""
    return f"{manager}/{__version__} ({sys.platform}) horizontal-pod-autoscaler"


def _short_hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
