"""Where ports really are that may not be bound: an annotation of ours on pods and Services.

`{"80": 20080}` says that what manifests call port 80 listens on 20080. The node notes it on pods (`runtime`), the proxy
on Services (`services`); both, and the variables that containers get, look ports up here.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

ANNOTATION: Final = "podscaler.dev/port-map"
PORT_MAX: Final = 65_535


def of(obj: Mapping[str, Any]) -> dict[int, int]:
    """The map noted on a pod or Service: port of the manifest -> real port. A note that cannot be read is none."""
    text = (obj["metadata"].get("annotations") or {}).get(ANNOTATION)
    try:
        noted = json.loads(text) if text else {}
        moved = {int(number): int(real) for number, real in noted.items()}
    except (ValueError, TypeError, AttributeError):
        return {}
    return {number: real for number, real in moved.items() if 0 < real <= PORT_MAX}


def text(moved: Mapping[int, int]) -> str:
    """The annotation's value; empty where no port is moved."""
    return json.dumps({str(port): real for port, real in moved.items()}, sort_keys=True) if moved else ""
