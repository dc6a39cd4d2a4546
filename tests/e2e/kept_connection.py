"""An HTTPS connection that can be ended for good, for clients of servers that are killed."""

import http.client
import os
import socket


class KeptConnection(http.client.HTTPSConnection):
    """As its base; `end` closes the socket even where an answer that never came still holds it."""

    _connected: socket.socket | None = None

    def connect(self) -> None:
        """As in the base."""
        super().connect()
        self._connected = self.sock

    def end(self) -> None:
        """Close it: collected later by chance, the socket would warn that nobody has."""
        self.close()
        if self._connected is not None and (descriptor := self._connected.detach()) >= 0:
            os.close(descriptor)
        self._connected = None
