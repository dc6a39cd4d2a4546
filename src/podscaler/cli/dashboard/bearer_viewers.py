"""Opens the viewers of a dashboard that is reachable from other machines: each logs in with a bearer token.

`podscaler.cli.dashboard.dashboard_run` passes `BearerViewers.open` to the server as its `open_viewer`.
"""

from dataclasses import replace

from podscaler.base.clock import Clock
from podscaler.base.errors import StatusError
from podscaler.base.version import __version__
from podscaler.dashboard.viewers import TokenViewer
from podscaler.kube.client import connect
from podscaler.kube.transport.config import Config
from podscaler.kube.transport.credentials import StaticHeader

TOKEN_MAX_CHARACTERS = 16_384


class BearerViewers:
    """Opens viewers with clients of their own.

    Args:
        config: the server; its credentials are not used.
        allows_writes: whether their clients can write.
    """

    def __init__(self, config: Config, clock: Clock, *, allows_writes: bool = False) -> None:
        self._open_client = connect.open_client if allows_writes else connect.open_reader
        self._config = config
        self._clock = clock

    async def open(self, token: str) -> TokenViewer:
        """The viewer of a token. Raises StatusError: 401 where the API server does not know the token."""
        # else the token would break the header, or be two words of it
        is_header_safe = token.isascii() and token.isprintable() and " " not in token
        if not is_header_safe or len(token) > TOKEN_MAX_CHARACTERS:
            raise StatusError("the token cannot be one of the API server", code=401, reason="Unauthorized")
        config = replace(  # nothing of the user who started the dashboard
            self._config,
            credentials=StaticHeader(f"Bearer {token}"),
            client_certificate_pem=None,
            client_key_pem=None,
            certificates=None,
            headers=(),
        )
        client = await self._open_client(config, self._clock, user_agent=f"podscaler/{__version__} dashboard viewer")
        viewer = TokenViewer(client, self._clock)
        try:
            await viewer.check()
        except BaseException:
            await viewer.close()
            raise
        return viewer
