"""How many examples are tried of each operation, of which operations, and from which seed.

Called by the tests of this folder. `make test` and `make test-all` try the same 50 of each every time;
`make fuzz` sets FUZZ_EXAMPLES (and pytest's --hypothesis-seed), and FUZZ_OPERATIONS, a regular expression, narrows what
is tried.
"""

import os
import re

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "50"))
IS_LONG = "FUZZ_EXAMPLES" in os.environ
SEEDS = st.integers(0, 2**64 - 1)
"""Of the choices that one request is made of; with the operation's label, so that no two get the same."""

_WANTED = re.compile(os.environ.get("FUZZ_OPERATIONS", ""))


def of(examples: int = EXAMPLES) -> settings:
    """Settings for that many examples. Nothing is shrunk: the server remembers what it was sent before."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=not IS_LONG,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )


def part(share: int) -> settings:
    """Settings for one example in `share`, where each costs as much as many others."""
    return of(max(2, EXAMPLES // share))


def wants(label: str) -> bool:
    """Whether an operation (`POST /api/v1/namespaces/{namespace}/pods`) is to be tried."""
    return _WANTED.search(label) is not None
