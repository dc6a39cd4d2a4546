"""How long tests with real processes, sockets and threads wait for what must come.

The end-to-end tests and every other test with real time use it. A wait that only ends early costs nothing, and the
machine may be busy with something else for a while: so it is long, and the same everywhere. What must not happen, or
must happen soon, is never shown by a deadline but by the order of what did happen.
"""

WITHIN_S = 120.0
"""For one thing to happen."""
COMMAND_WITHIN_S = 300.0
"""For a program to end that may wait for something itself, kubectl with --timeout=120s for example."""
