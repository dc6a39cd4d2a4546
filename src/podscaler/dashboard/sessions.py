"""Keeps the sessions of the dashboard: one-time login tokens, and cookies that stand for a viewer.

`podscaler.dashboard.server` redeems a token at POST /login and finds the session of every other request. Rules:

1. A login token is redeemed once, within LOGIN_TOKEN_S; then it is worthless.
2. A session ends SESSION_IDLE_S after its last request, or at logout; at most SESSIONS_MAX exist, and the one that was
   idle for the longest time ends for a new one.
3. Only digests of tokens and cookies are kept; both have 256 random bits.
4. After FAILURES_MAX wrong tokens within FAILURES_WINDOW_S no token is accepted for the rest of that time.
"""

import hashlib
import secrets
from collections import OrderedDict, deque
from dataclasses import dataclass

from podscaler.base.clock import Clock
from podscaler.dashboard.viewers import Viewer

LOGIN_TOKEN_S = 24 * 3600.0
SESSION_IDLE_S = 12 * 3600.0
SESSIONS_MAX = 200
LOGINS_MAX = 20
"""How many login tokens are valid at the same time; the oldest is dropped for a new one."""
FAILURES_MAX = 20
FAILURES_WINDOW_S = 60.0
STREAMS_MAX = 10
"""How many event streams a session may have open; `podscaler.dashboard.server` checks it."""
TOKEN_BYTES = 32


@dataclass(slots=True, eq=False)
class Session:
    """One session.

    Attributes:
        viewer: whose it is.
        last_used_s: its last request, by the monotonic clock.
        stream_count: how many event streams it has open.
        was_slow: whether its last event stream was ended because it did not read.
        is_ended: whether it ended by logout or for a new session; requests of it may still run.
    """

    viewer: Viewer
    last_used_s: float
    stream_count: int = 0
    was_slow: bool = False
    is_ended: bool = False


class Sessions:
    """All sessions of one server, by the module's rules."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._login_tokens: OrderedDict[bytes, float] = OrderedDict()  # when each was made, by its digest
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._failures_s: deque[float] = deque(maxlen=FAILURES_MAX)  # when the latest wrong tokens were sent

    def __len__(self) -> int:
        return len(self._sessions)

    def new_login_token(self) -> str:
        """Make a login token, which `redeem` accepts once."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._login_tokens[_digest(token)] = self._clock.monotonic_s()
        if len(self._login_tokens) > LOGINS_MAX:
            self._login_tokens.popitem(last=False)
        return token

    def redeem(self, token: str) -> bool:
        """Use up a login token; returns whether it may begin a session."""
        made_s = self._login_tokens.pop(_digest(token), None)
        return made_s is not None and self._clock.monotonic_s() - made_s < LOGIN_TOKEN_S

    def has_too_many_failures(self) -> bool:
        """Whether no token is accepted now, because of FAILURES_MAX wrong ones within FAILURES_WINDOW_S (rule 4)."""
        is_full = len(self._failures_s) == FAILURES_MAX
        return is_full and self._clock.monotonic_s() - self._failures_s[0] < FAILURES_WINDOW_S

    def add_failure(self) -> None:
        """Count a wrong token."""
        self._failures_s.append(self._clock.monotonic_s())

    async def begin(self, viewer: Viewer) -> str:
        """Begin a session; returns the value of its cookie."""
        cookie = secrets.token_urlsafe(TOKEN_BYTES)
        self._sessions[_digest(cookie)] = Session(viewer, self._clock.monotonic_s())
        if len(self._sessions) > SESSIONS_MAX:
            _, least_recent = self._sessions.popitem(last=False)
            await _end(least_recent)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, whose idle time begins anew; None if it does not exist, or it ended."""
        digest = _digest(cookie)
        session = self._sessions.get(digest)
        if session is None or self.is_over(session):
            return None
        session.last_used_s = self._clock.monotonic_s()
        self._sessions.move_to_end(digest)
        return session

    def is_over(self, session: Session) -> bool:
        """Whether a session has ended."""
        return session.is_ended or self._clock.monotonic_s() - session.last_used_s >= SESSION_IDLE_S

    async def end(self, cookie: str) -> None:
        """End the session of a cookie, if there is one."""
        session = self._sessions.pop(_digest(cookie), None)
        if session is not None:
            await _end(session)

    async def close(self) -> None:
        """End all sessions."""
        while self._sessions:
            _, session = self._sessions.popitem()
            await _end(session)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


async def _end(session: Session) -> None:
    """Mark a session as ended, for requests of it that still run, and close its viewer."""
    session.is_ended = True
    await session.viewer.close()
