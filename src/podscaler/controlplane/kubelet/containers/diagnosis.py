"""What a container that ended soon after its start probably died of, told from its last words.

`container_run` asks; the answer becomes an event. Pure. All pods share one machine's network, which is what programs
made for containers stumble over: they bind 0.0.0.0, or a port that only root may bind.
"""

import re
from collections.abc import Collection
from typing import Final

SOON_S: Final = 15

_IN_USE: Final = re.compile(
    rb"address (?:is )?already in use|EADDRINUSE|Address in use|Only one usage of each socket address", re.IGNORECASE
)
_DENIED: Final = re.compile(rb"permission denied|EACCES|operation not permitted", re.IGNORECASE)
_BINDING: Final = re.compile(rb"bind|listen|port|socket|address", re.IGNORECASE)


def bind_fault(recent: bytes, *, pod_ip: str, first_port: int, forbidden: Collection[int] = ()) -> str:
    """The sentence for the event, empty where nothing of the kind was said.

    Args:
        recent: the end of the container's output.
        first_port: the lowest port that an ordinary user may bind.
        forbidden: the container's declared ports that its user may not bind: with one, any refusal is suspect.
    """
    if _IN_USE.search(recent):
        return (
            "its log says that an address is in use. All pods share the network of this machine: bind to the pod's own "
            f"address in $POD_IP ({pod_ip}) instead of 0.0.0.0"
        )
    refused = [line for line in recent.splitlines() if _DENIED.search(line)]
    if refused and (forbidden or any(_BINDING.search(line) for line in refused)):
        return (
            f"its log says that it may not bind its port. Ports below {first_port} need root here: let it listen on a "
            "higher port (the Service's targetPort can follow)"
        )
    return ""
