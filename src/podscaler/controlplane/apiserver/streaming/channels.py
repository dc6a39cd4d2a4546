"""Multiplexes streams (stdin, stdout, ...) over one WebSocket: the first byte of a message is the channel of its data.

`pod_sessions` (exec, attach) and `pod_ports` (port-forward) use it. The channels of exec and attach:

    0 stdin   1 stdout   2 stderr   3 error (one Status at the end)   4 resize
    255 half-close (v5: the next byte is the channel)

Those of port-forward are numbered by the ports of the request: 2*N has the data of port N, 2*N+1 its error.

The message b"\\x01hello" is `hello` on standard output. In the base64 protocols messages are text: the channel as a
digit, the rest in base64 ("1aGVsbG8=").

A new sub-protocol: a `Framing` in `COMMAND_PROTOCOLS` or `PORT_PROTOCOLS`.

Source: the remote command sub-protocols of the Kubernetes API, `channel.k8s.io` to `v5.channel.k8s.io`.
"""

import base64
import binascii
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

from aiohttp import WSMsgType, web

from podscaler.controlplane.apiserver.http.open_sessions import Activity

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2
ERROR: Final = 3
RESIZE: Final = 4
"""The channels of exec and attach (see the table above)."""
HALF_CLOSE: Final = 255
_DIGIT_ZERO: Final = ord("0")


class ChannelProtocolError(Exception):
    """The client violates the protocol; the connection is to be closed."""


@dataclass(frozen=True, slots=True)
class Framing:
    """One WebSocket sub-protocol: how messages carry channels.

    Attributes:
        name: its name in Sec-WebSocket-Protocol; empty for clients that offer none.
        is_base64: whether messages are text.
        half_closes: whether the client can close a single channel.
        has_status: whether the error channel carries a Status; otherwise, also in port-forward, only a text.
    """

    name: str
    is_base64: bool = False
    half_closes: bool = False
    has_status: bool = False

    @property
    def is_translated(self) -> bool:
        """Whether upstream's API server ends the session itself, as in v5; older protocols it passes to the kubelet."""
        return self.half_closes

    def encode(self, channel: int, data: bytes) -> bytes | str:
        """The message that carries `data`."""
        if self.is_base64:
            return chr(_DIGIT_ZERO + channel) + base64.b64encode(data).decode()
        return bytes((channel,)) + data

    def decode(self, message: bytes | str) -> "ChannelMessage | None":
        """A decoded message, None for an empty or invalid one, which are ignored as by kube-apiserver.

        Raises ChannelProtocolError if a half-close does not name a channel.
        """
        message_bytes = message.encode() if isinstance(message, str) else message
        if not message_bytes:
            return None
        first_byte, content = message_bytes[0], message_bytes[1:]
        if self.half_closes and first_byte == HALF_CLOSE:
            if len(content) != 1 or content[0] > RESIZE:  # the highest channel
                raise ChannelProtocolError("a stream close signal is followed by the one byte of a channel")
            return ChannelMessage(content[0], b"", ends=True)
        if not self.is_base64:
            return ChannelMessage(first_byte, content)
        try:
            return ChannelMessage(first_byte - _DIGIT_ZERO, base64.b64decode(content, validate=True))
        except binascii.Error:
            return None


@dataclass(frozen=True, slots=True)
class ChannelMessage:
    """One message of a client: data of a channel, or (`ends`) the end of the client's data on that channel."""

    channel: int
    data: bytes
    ends: bool = False


def _framings_by_name(*framings: Framing) -> Mapping[str, Framing]:
    """The sub-protocols by their names."""
    return {framing.name: framing for framing in framings}


COMMAND_PROTOCOLS: Final = _framings_by_name(
    Framing(""),
    Framing("channel.k8s.io"),
    Framing("base64.channel.k8s.io", is_base64=True),
    Framing("v4.channel.k8s.io", has_status=True),
    Framing("v4.base64.channel.k8s.io", is_base64=True, has_status=True),
    Framing("v5.channel.k8s.io", half_closes=True, has_status=True),
)
"""The sub-protocols of exec and attach."""

PORT_PROTOCOLS: Final = _framings_by_name(
    Framing(""), Framing("v4.channel.k8s.io"), Framing("v4.base64.channel.k8s.io", is_base64=True)
)
"""The sub-protocols of port-forward."""


class ChannelSocket:
    """An open WebSocket with channels; every message counts as activity of the session.

    Args:
        socket: the accepted WebSocket.
        framing: the negotiated sub-protocol.
        activity: of the session.
    """

    def __init__(self, socket: web.WebSocketResponse, framing: Framing, activity: Activity) -> None:
        self._socket = socket
        self._activity = activity
        self.framing = framing

    async def send(self, channel: int, data: bytes) -> None:
        """Send `data`. Raises ConnectionError if the client has disconnected."""
        message = self.framing.encode(channel, data)
        if isinstance(message, str):
            await self._socket.send_str(message)
        else:
            await self._socket.send_bytes(message)
        self._activity.touch()

    async def received_messages(self) -> AsyncIterator[ChannelMessage]:
        """The valid messages of the client, until it closes the connection. Raises ChannelProtocolError."""
        async for message in self._socket:
            self._activity.touch()
            if message.type in (WSMsgType.BINARY, WSMsgType.TEXT):
                decoded = self.framing.decode(message.data)
                if decoded is not None:
                    yield decoded

    async def close(self) -> None:
        """Close the connection."""
        await self._socket.close()
