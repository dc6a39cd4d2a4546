"""For whom the current task writes: None where the control plane writes for itself.

`server.dispatch` sets it for each request once the user is known; `escalation`, which is called deep inside of a write,
asks. It is a context variable because what lies between (objects, writer, store) serves many that act for nobody.
"""

from contextvars import ContextVar

from podscaler.controlplane.access.users import User

USER: ContextVar[User | None] = ContextVar("podscaler-acting-user", default=None)
